// Package session has the three interfaces of everything that an MCP client can talk to: a Doer answers
// requests, a Session is the state of one legacy client, a Surface is what a path stands for. It also
// has the Request and its Reply, the proof that a call was decided about, a bounded queue of events,
// the clock of a request, and ReplyWriter (reply*.go), which writes what MCPProxy itself answers.
//
// The contract:
//   - Order. All calls of Request.Say end before Do returns, and never overlap. An Event is valid
//     during the call. Say may block, except where Listen says otherwise.
//   - Request.Head is called before the first event and before Do returns; the last call counts.
//   - The end of ctx cancels the request. If its cause is a Cancelled, the server gets the client's
//     own words. initialize is never cancelled.
//   - A question of the server is an Event with an ID; Session.Respond answers it. Modern servers do
//     not ask: their Result says that input is required.
//   - A Request is only read, and nothing of it is kept after Do has returned.
//   - The same problem has the same text on every surface. An internal error is logged, and the client
//     gets no details.
//
// It opens no connection, decides nothing and records nothing.
package session
