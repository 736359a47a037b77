// Package gate runs tool calls: it is the only way from a client to a tool of a server.
//
// Execution of a call: decide (policy), wait for an approval where a rule asks for one, write the
// record, wait for a slot and a session, decide again, send, write the outcome. MCP, REST, the CLI
// and every address use it. Surface is one server as clients see it (/mcp/servers/{server});
// Aggregate is all servers under one address (/mcp/all).
//
// Guarantees:
//   - A call is decided on one snapshot of the catalog, and again after every wait.
//   - The record is in the spool before the server is asked. The outcome is always recorded, also
//     after a panic or a cancellation. Every refusal is recorded.
//   - The bytes that were decided about are the bytes that are sent.
//   - This package is the only caller of session.NewPermit. No connection sends a tools/call without
//     its proof.
//   - On /mcp/all a name follows from the server and its own name alone, and so does the way back.
//
// It does not know transports, opens no connection, and makes no decision that policy does not make.
//
// Files: entry.go (the ways in), resolve.go (what a call is about), call.go (the stages in order),
// decide.go (what policy is asked), insert.go (earlier results as arguments), approve.go and form.go
// (approvals), audit.go (the record), admission.go (slots), recheck.go, send.go, settle.go (the
// outcome and large results), surface.go (one server), observe.go (metrics and traces), aggregate*.go
// (all servers).
package gate
