// Package catalog turns configuration, connections and approvals into one immutable snapshot: servers,
// tools with effective hints and status, counts, and the search index. It keeps the last known tools
// of each server, also across restarts, so that tools of a server that is away can be found. Offers
// and PrimitiveGuard (primitives_*.go) do the same for prompts, resources, templates and instructions.
//
// Guarantees:
//   - Current is one atomic load. A snapshot never changes, and its parts belong together.
//   - Discovery and calls see the same hints and the same status.
//   - A list is judged by approval before it is published (admit.go). Lists and greetings leave
//     without what is not approved, and otherwise as the server's bytes.
//
// It contacts servers only to list prompts and resources, and does not decide calls.
package catalog
