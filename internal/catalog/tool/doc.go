// Package tool describes a tool: ID, three-state hints, definition, fingerprint, and its alias on /mcp/all. It does the
// same for prompts, resources, templates and instructions (Primitive).
//
// Files:
//   - id.go: the ID "server:tool", and which server names are valid.
//   - definition.go: parses a definition and computes its fingerprint. deprecated.go: whether a definition declares the
//     tool deprecated.
//   - canonical.go: canonical JSON, over which fingerprints are computed.
//   - hints.go: MCP annotations, in which each hint may be unset.
//   - decision_facts.go: the facts about a tool that a decision used, as in activity records.
//   - alias.go: names and URIs on /mcp/all.
//   - app.go: the user interface of a tool (MCP Apps).
//   - primitive.go: prompts, resources, templates and instructions.
//   - confusable.go: server names that a user may confuse.
//
// Guarantees:
//   - A definition keeps the server's bytes, and a hint that was not sent stays unset.
//   - Equal definitions have equal fingerprints, whatever the order of keys and the white space. Any other difference
//     changes the fingerprint.
//   - An alias depends only on the server and the name. Two names never have the same alias.
//
// It does no I/O and makes no decision.
package tool
