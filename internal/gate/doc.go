// Package gate runs tool calls. Every call from a client to a tool of a server goes through it: from MCP, REST, the
// CLI and every endpoint. A lane call comes from call_tool_read, call_tool_write or call_tool_destructive (see
// gate/policy for "lane"). Other clients send tools/call to one server (/mcp/servers/{server}) or to all servers
// together (/mcp/all).
//
// The stages of a call, in order:
//
//   - entry.go: the entry points Call, CallFromAggregate and DryRun
//   - resolve.go: finds the tool and reads the arguments; arguments.go parses and validates them
//   - call.go: execute runs the stages
//   - decide.go: collects the facts, evaluates the policy
//   - insert_results.go, resultrefs.go: insert stored results into the arguments
//   - approve.go, approval_form.go: wait for an approval; ask the client itself in a form
//   - audit.go: the record and its outcome; refuse.go: records of calls that a surface refused
//   - concurrency.go: slots and the queue
//   - recheck.go: decides again after a wait
//   - send.go: sends the call
//   - settle.go: the outcome; selects parts of results and cuts large ones
//
// Other files:
//
//   - gate.go: Gate and its dependencies
//   - surface.go: the endpoint of one server; tasks.go: hides tasks of other actors
//   - aggregate.go and aggregate_*.go: all servers as one (list, names, routes, sessions, changes, MCP Apps)
//   - observe.go: metrics and traces; refusal_limits.go: delays of refusals
//   - sessionless.go, searches.go: session IDs and searches for the record
//
// Guarantees:
//
//   - A call is decided on one snapshot of the catalog, and again after every wait.
//   - The record is in the spool before the call is sent. The outcome is always recorded, also after a panic or a
//     cancellation. Every refusal is recorded.
//   - The bytes that are sent are exactly the bytes that were decided on.
//   - This package is the only caller of session.NewToolCallPermit. No connection sends a tools/call without that
//     permit.
//   - On /mcp/all a tool's name depends only on its server and its own name.
//
// The package does not depend on transports and opens no connection. All its decisions come from package policy.
package gate
