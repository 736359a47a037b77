// Package wirejson reads and writes JSON bytes and JSON-RPC messages: JSON values, the JSON-RPC 2.0 envelope, and its
// framing in lines and server-sent events. No other package does that.
//
// Files:
//   - check.go, scan.go, names.go: the strict check of a text, its scanner, and duplicate member names
//   - cursor.go, read.go: walk over a text; read members, elements and scalars
//   - member.go, text.go, marshal.go: set and drop members; escape and unescape strings
//   - message.go, parse.go: write and parse JSON-RPC messages
//   - lines.go, sse_events.go, window.go: read messages as lines or server-sent events, and their buffers
//
// Guarantees:
//   - JSON that Check accepts has the same meaning for every parser: RFC 8259 in valid UTF-8, no lone surrogates, no
//     numbers beyond float64, no duplicate names after case folding, no NUL in names, limits on size and depth. Check
//     does not recurse, and allocates nothing up to 64 members and 64 levels.
//   - Params, results and error data keep the sender's bytes. Messages keep their order. Every size is limited.
//     Requests are parsed strictly. In replies of servers, only the envelope is parsed strictly.
//   - No function panics. Written values read back unchanged.
//   - It decodes only strings, integers and booleans, and contains no methods of MCP.
package wirejson
