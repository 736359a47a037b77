// Package result cuts a tool's result that is larger than the limit so that it
// stays well-formed, and pages through the whole of it afterwards.
//
// It guarantees that a cut result is valid JSON and a valid CallToolResult, that text
// is cut between characters and never inside an image or other binary block,
// and that the parts read one after the other give the whole. It stores
// nothing: door makes the handle of a whole result, store keeps it, and gateway
// reads on in it.
//
// On scan (members and elements) and text (strings as they are written) stand
// block and shrink, on these cut, which makes results smaller, and path, which
// finds a place in one; read pages by it.
package result
