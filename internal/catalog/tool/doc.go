// Package tool describes a tool: ID, three-state hints, definition, fingerprint, and its
// alias on /mcp/all. It has the same for prompts, resources, templates and instructions
// (Primitive).
//
// Guarantees:
//   - A definition keeps the server's bytes, and a hint that was not sent stays unset.
//   - Equal definitions have equal fingerprints, whatever the order of keys and the white
//     space. Any other difference changes the fingerprint.
//   - An alias follows from the server and the name alone; two names never share one.
//
// It does no I/O and makes no decision.
package tool
