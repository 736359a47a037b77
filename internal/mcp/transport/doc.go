// Package transport connects to one MCP server: stdio, streamable HTTP, or the SSE transport of
// 2024-11-05. http_*.go are the HTTP clients below it: a lean one, and net/http.
//
// Guarantees:
//   - Params and results keep their bytes. Messages of the server are delivered in order, each to the
//     request or client that it belongs to.
//   - A request that may have been executed is never sent twice. Redirects are not followed. The end
//     of a context ends the exchange at once.
//   - A server that does not read, or sends without end, delays only itself. Messages of one server
//     take no more memory than its largest message may.
//   - Response headers that a client gets are chosen and bounded.
//
// A stream that a legacy server ends early is resumed with Last-Event-ID (follow.go). A connection
// that is lost is not repaired: upstream makes another. It starts no process and decides no call.
package transport
