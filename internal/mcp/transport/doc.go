// Package transport connects to one MCP server: stdio, streamable HTTP, or the SSE transport of
// 2024-11-05.
//
// Files:
//   - link.go, core.go: the interface Link, its options, and the common part of all links
//   - stdio.go, http.go, sse.go: the links for a process, streamable HTTP, and HTTP+SSE
//   - duplex.go: a link with one stream for all messages (stdio.go, sse.go)
//   - pending.go, sent_request.go, orphans.go: open requests, their IDs and progress tokens, and abandoned ones
//   - listen.go, resume.go: the notification stream; resumes a reply stream that ended early
//   - session_lost.go: detects whether a refusal means that the session is lost
//   - errors.go, failure.go: errors, and the reason why a server is not connected
//   - http_site.go: the URL, headers and session of an HTTP server
//   - http_client.go, http_lean.go, http_std.go, http1.go: the HTTP clients: a lean one, and net/http
//   - http_account.go, http_fields.go, modern_headers.go: authorization, forwarded response headers, headers that repeat the body
//   - http_budget.go, http_buffers*.go: limit and pool the memory of large messages
//
// Guarantees:
//   - Params and results keep their bytes. Messages of the server are delivered in order, each to the request or client
//     that it belongs to.
//   - A request that may have been executed is never sent twice. Redirects are not followed. The end
//     of a context ends the exchange at once.
//   - A server that does not read, or sends without end, delays only itself. The messages of one server never use more
//     memory than its largest allowed message.
//   - The response headers that a client gets are selected and limited.
//
// A stream that a legacy server ends early is resumed with Last-Event-ID (resume.go). A lost connection is not
// repaired, because upstream opens another one. It starts no process and makes no decision about calls.
package transport
