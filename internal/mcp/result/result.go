// Package result cuts a tool's result that is larger than the limit so that it
// stays well-formed, and pages through the whole of it afterwards.
//
// It guarantees that a cut result is valid JSON and a valid CallToolResult, that text
// is cut between characters and never inside an image or other binary block,
// that both say of each place where something is missing how to read on there, and
// that the parts read one after the other give the whole. It stores
// nothing: door makes the handle of a whole result, store keeps it, and gateway
// reads on in it.
//
// On scan (members and elements), text (strings as they are written), step (paths
// as they are written) and gap (what is said of what is missing) stand shrink, which
// makes JSON small, block and cut, which make results small, and path, which finds
// places in one; read pages by it.
package result
