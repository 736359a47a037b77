// Package catalog turns configuration, connections and approvals into one immutable
// snapshot: servers, tools with effective hints and status, counts, and the search index.
// It saves the last known tools of each server across restarts, so that tools of a
// disconnected server can be found. Primitives and PrimitiveGuard (primitives_*.go) do
// the same for prompts, resources, templates and instructions.
//
// Guarantees:
//   - Current is one atomic load. A snapshot never changes, and its parts are consistent.
//   - Discovery and calls see the same hints and the same status.
//   - Each list is evaluated by approval before it is published (admit.go). Lists and
//     instructions for clients omit what is not approved; all else is the server's bytes.
//
// It contacts servers only to list prompts and resources, and does not decide calls.
package catalog
