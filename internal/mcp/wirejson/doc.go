// Package wirejson reads and writes JSON bytes and JSON-RPC messages. It is the only code of the program
// that does: a strict check, a cursor, members, strings (rawjson.go), the JSON-RPC 2.0 envelope
// (message.go, parse.go) and its framings in lines and server-sent events.
//
// Guarantees:
//   - What Check accepts means the same to every JSON parser: RFC 8259 in valid UTF-8, no lone
//     surrogates, no numbers beyond float64, no members whose names are equal when case is folded, no
//     NUL in names, bounds on size and depth. Check does not recurse, and allocates nothing up to 64
//     members and 64 levels.
//   - Params, results and error data keep the sender's bytes. Messages keep their order. Every size is
//     bounded. Requests are parsed strictly; answers of servers leniently in what they carry.
//   - No function panics. What is written reads back the same.
//
// It decodes no values beyond strings, integers and booleans, and does not know methods of MCP.
package wirejson
