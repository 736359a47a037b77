// Package ops implements the operations of users and agents. Each operation is a method with a typed input and a typed
// answer. Package api declares its route, cli its command and mcpserver its tool.
//
// Operations of agents (type Gateway):
//   - gateway.go: the type; finds servers and tools by name, records actions of users and asks for presence
//   - retrieve.go: search tools (retrieve_tools) and learn from usage; retrieve_answer.go encodes the tools and the
//     notices
//   - servers.go: read servers, restart a server, log in to one; tools.go: read and change tools, and their short form;
//     views.go: the answers
//   - status.go: the daemon's state, statistics of calls
//   - proposals.go: servers that agents propose
//
// Operations of users:
//   - admin_*.go (Admin): add and change servers (_servers), review and approve them (_review), decide about definitions
//     (_definition). admin_offline.go changes the file without a daemon.
//   - reviews.go: the results of reviews
//   - calls.go (CallApprovals): pending calls and leases
//   - config*.go (ConfigOperations): the configuration file, its earlier versions (_history), masking (_mask), checks
//     (_diagnostics)
//   - tokens*.go (AccessOperations): agent tokens, profiles, presence
//   - secrets.go: store secrets, and find secrets in launch commands
//   - clients*.go (LocalClients): connect MCP clients to this MCPProxy
//   - import*.go (Importer): import the servers of MCP clients; pasted_servers.go: parse a pasted text
//   - inspect*.go (Inspector): lists for the web UI, with usage, logs and search
//   - history*.go (ActivityHistory): the activity log as a whole: summaries, exports, and the proof and verification of
//     an export
//   - simulate*.go: apply another configuration to recorded calls
//   - explain.go: predict the outcome of a call in each lane
//   - events*.go (EventHub): the stream of GET /events; _hub publishes, _listener serves one client and resumes its
//     stream after Last-Event-ID
//
// Shared: inputs.go contains the inputs, and the types of streamed answers.
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
