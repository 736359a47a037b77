// Package tool describes a tool: ID, three-state hints, definition, fingerprint, and its alias on
// /mcp/all.
//
// Guarantees:
//   - A definition keeps the server's bytes, and a hint that was not sent stays unset.
//   - Equal definitions have equal fingerprints, whatever the order of keys and the white space. Any
//     other difference changes the fingerprint.
//   - An alias follows from the server and its own name alone; two names never share one.
//
// It does no I/O and makes no decision.
package tool
