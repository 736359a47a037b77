// Package mcpserver serves MCP to clients, over streamable HTTP and as lines over the local socket
// (docs/adr/0050-lines-over-the-socket.md), in the legacy and the modern protocol. It reads a request,
// passes it to the surface of its path, and writes the reply. BuiltinTools is the surface of /mcp:
// retrieve_tools, the three call tools, read_result and upstream_servers.
//
//   - Host, Origin, actor and size are checked before a request is read.
//   - The text is parsed strictly, once; surfaces get its bytes. Headers must match the body.
//   - A session belongs to the actor who opened it, and its ID cannot be guessed.
//   - A client that does not read its reply delays no other client.
//   - Invalid arguments are refused with the error and the allowed values, and recorded.
//   - It makes no decision about a call: gate does.
//
// message.go handles messages of any transport. request.go and answer.go are HTTP, lines.go is lines;
// notifications go through an outlet. builtin*.go are the built-in tools.
package mcpserver
