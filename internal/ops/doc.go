// Package ops implements the operations of users and agents. Each operation is a method with a typed input and a typed
// answer. Package api declares its route, cli its command and mcpserver its tool.
//
// Operations of agents (type Gateway):
//   - gateway.go: the type; finds servers and tools by name
//   - retrieve*.go: search tools (retrieve_tools); _answer encodes the tools, _notices the texts, _learn learns from
//     usage; tool_signature.go their short form
//   - servers.go, tools.go, views.go, counts.go, unhinted.go, usable.go: read servers and tools
//   - restart.go, logins.go: restart a server, log in to one
//   - result.go: read a part of a stored result
//   - status.go, stats.go, activity.go: the daemon's state, statistics of calls, single records
//   - proposal.go: servers that agents propose
//
// Operations of users:
//   - admin_*.go (Admin): add and change servers (_servers), review and approve them (_review, _under_review), decide
//     about definitions (_definition, _batch), handle proposals (_proposals). admin_offline.go changes the file without
//     a daemon.
//   - reviews.go: the results of reviews
//   - calls_*.go (CallApprovals): pending calls and leases
//   - config_*.go (ConfigOperations): the configuration file, its earlier versions (_versions), masking (_mask), checks
//     (_diagnostics)
//   - tokens_*.go (AccessOperations): agent tokens, profiles, presence
//   - secrets.go, credentials.go: store secrets; find secrets in launch commands
//   - clients_*.go (LocalClients): connect MCP clients to this MCPProxy
//   - import_*.go (Importer): import the servers of MCP clients; pasted_servers.go: parse a pasted text
//   - inspect_*.go (Inspector): lists for the web UI, with usage, logs and search
//   - history*.go (ActivityHistory): the activity log as a whole: summaries, exports, and the proof and verification of
//     an export
//   - simulate_*.go: apply another configuration to recorded calls
//   - explain.go: predict the outcome of a call in each lane
//   - events_*.go (EventHub): the stream of GET /events; _run publishes, _listener serves one client and resumes its
//     stream after Last-Event-ID
//
// Shared: inputs.go contains the inputs, shell_quote.go quotes words of suggested commands, action_recorder.go records
// actions of users, presence_confirm.go asks for presence, stream.go contains the types of streamed answers.
//
// Guarantees:
//   - A decision is recorded with its author before it takes effect, and names the fingerprint that the user saw. It
//     applies when the method returns.
//   - Only users decide. An agent can propose a server.
//   - Answers come from one snapshot of the catalog. Secrets are masked. A model sees no definition that is not
//     approved.
//   - The amount of data that one request reads and keeps in memory is limited.
//
// Package ops calls tools only through package gate and does not depend on a protocol.
package ops
