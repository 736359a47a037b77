// Package ops has the operations of users and agents. Each is a method with a typed input and a
// typed answer; api declares its route, cli its command, mcpserver its tool.
//
// The prefix of a file is its noun:
//   - gateway, retrieve, views, reviews: what agents can do; find tools, read servers and results
//   - admin_: add, change, review, approve, block servers and definitions
//   - inspect_: how servers and tools are used, logs, pages of tools
//   - history, summary, export, proof: the activity log as a whole
//   - config_: the configuration file, its versions, diagnostics
//   - tokens_: agent tokens, profiles, presence
//   - calls_: calls that wait for an approval, and leases
//   - clients_, import_: connect MCP clients, import their servers
//   - secrets_, credentials_: stored secrets; find secrets in launch commands
//   - simulate_: what another configuration would have done to recorded calls
//   - explain_: what would happen to a call, in each lane
//   - events_: the stream of GET /events
//
// Guarantees:
//   - A decision is recorded with its author before it takes effect, names the fingerprint that the
//     user saw, and is in force when the method returns.
//   - Only users decide. An agent can propose a server.
//   - Answers come from one snapshot of the catalog. Secrets are masked. A model sees no definition
//     that is not approved.
//   - What one request reads and keeps in memory has bounds.
//
// It calls tools only through gate and knows no protocol.
package ops
