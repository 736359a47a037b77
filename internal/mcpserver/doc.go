// Package mcpserver serves MCP to clients, over streamable HTTP and as lines over the local socket
// (docs/adr/0050-lines-over-the-socket.md), in the legacy and the modern protocol. It reads a request,
// passes it to the endpoint of its path, and writes the reply. BuiltinTools is the endpoint /mcp:
// retrieve_tools, the three call tools, read_result and upstream_servers.
//
// Files:
//   - server.go, sessions.go: resolve the path to an endpoint; the table of sessions
//   - session_id.go, session_store.go, restore.go: signed session IDs, the stored part of sessions, and rebuilding them
//     after a restart
//   - authenticate.go, headers.go, body.go: check credentials, Origin and headers, and read the body
//   - http_request.go, http_answer.go, http_reply.go, stream.go: one HTTP request, its reply, and its event stream
//   - lines.go: a connection of the local socket with one message per line
//   - message.go, batch.go: parse and run a message of any transport; batches
//   - client_writer.go: queues and writes events and replies to one client
//   - asker.go: asks the client questions of MCPProxy
//   - builtin.go, builtin_call.go, builtin_servers.go: run the built-in tools
//   - builtin_definitions.go, builtin_instructions.go, builtin_arguments.go: their definitions, the instructions for the model, their parameters
//
// Guarantees:
//   - Host, Origin, actor and size are checked before a request is read.
//   - The text is parsed strictly, once; endpoints get its bytes. Headers must match the body.
//   - A session belongs to the credential that opened it and to one endpoint, and its ID cannot be guessed or forged.
//   - A client that does not read its reply delays no other client.
//   - Invalid arguments are refused with the error and the allowed values, and recorded.
//   - It makes no decision about a call: gate does.
//   - It stores no events: a client that has lost its event stream opens a new one. GET /events can be resumed (ops/events_listener.go), and
//     MCPProxy resumes the streams of servers with Last-Event-ID (mcp/transport/resume.go).
package mcpserver
