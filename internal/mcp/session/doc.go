// Package session defines the interfaces to all endpoints of MCP clients. A Doer answers requests, a Session is the
// state of one legacy client, and an Endpoint is one URL. The package also has Request and Reply, the Permit of a tool
// call, a bounded queue of events, and the deadline of a request. ReplyBuilder (reply*.go) builds MCPProxy's own
// replies.
//
// Files:
//   - session.go: Doer, Session, Endpoint, Request, Event and Reply
//   - permit.go: the Permit of a tool call
//   - deadline.go: the deadline of a request, which pauses while the client has open questions
//   - questions.go: MCPProxy's own questions to a client
//   - queue.go, delivery.go: a bounded queue of events, and how events reach a client
//   - reply.go, reply_text.go: ReplyBuilder, which builds MCPProxy's own replies
//   - errors.go, end.go, context.go: errors, the signal that a session has ended, contexts
//
// The contract:
//   - Order: all calls of Request.Say return before Do returns, and never overlap. An Event is valid only during the call. Say
//     may block, except in Listen.
//   - Request.Head is called before the first event and before Do returns; the last call counts.
//   - The end of ctx cancels the request. If its cause is a ClientCancelledError, the server gets the client's own params.
//     initialize is never cancelled.
//   - A question of a server is an Event with an ID, which Session.AnswerServerQuestion answers. Modern servers do not
//     send questions: their result reports that input is required.
//   - A Request is read-only, and nothing of it is retained after Do returns.
//   - A problem has the same text on every endpoint. An internal error is logged, and the client gets no details.
//
// It opens no connections, makes no decisions and records nothing.
package session
