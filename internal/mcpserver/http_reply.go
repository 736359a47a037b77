package mcpserver

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
)

// httpReply writes the reply to one HTTP request.
type httpReply struct {
	w      http.ResponseWriter
	id     json.RawMessage // of the message; nil if unknown
	heads  []mcp.Header    // headers of the server's response
	stream *eventStream    // nil: the reply is plain JSON
	begun  bool            // the headers of the plain JSON reply are sent
}

// setForwardedHeaders stores headers of the server's response for the reply.
func (a *httpReply) setForwardedHeaders(fields []mcp.Header) {
	a.heads = fields
	if a.stream != nil {
		a.stream.setForwardedHeaders(fields)
	}
}

// sendReply writes a reply as plain JSON.
func (a *httpReply) sendReply(r *session.Reply) {
	all := replyPieces(a.id, r)
	a.sendBody(cmp.Or(r.Status, http.StatusOK), all[:]...)
}

// sendError writes an error with an HTTP status.
func (a *httpReply) sendError(status int, e *wirejson.RPCError) {
	a.sendBody(status, newErrorMessage(a.id, e))
}

// sendAccepted answers a message without a reply (202).
func (a *httpReply) sendAccepted() {
	a.w.Header()["Content-Length"] = noLength
	a.sendPieces(http.StatusAccepted)
}

// sendBody writes a complete body in pieces, to avoid a copy of a large result.
func (a *httpReply) sendBody(status int, pieces ...[]byte) {
	size := 0
	for _, p := range pieces {
		size += len(p)
	}
	h := a.w.Header()
	addForwardedHeaders(h, a.heads)
	h["Content-Type"] = typeJSON
	h["Content-Length"] = []string{strconv.Itoa(size)}
	a.sendPieces(status, pieces...)
}

// sendPieces writes a reply completely. It resets the deadline afterwards, because the connection may be
// reused.
func (a *httpReply) sendPieces(status int, pieces ...[]byte) {
	a.begun = true
	rc := http.NewResponseController(a.w)
	limited := rc.SetWriteDeadline(time.Now().Add(writeTimeout)) == nil // not every writer supports it
	a.w.WriteHeader(status)
	for _, p := range pieces {
		if len(p) == 0 {
			continue
		}
		if _, err := a.w.Write(p); err != nil {
			return // the client has disconnected
		}
	}
	if limited && rc.Flush() == nil {
		_ = rc.SetWriteDeadline(time.Time{})
	}
}

var closing = []byte("}") // never modified

// newResultStart returns the start of a response, up to its result.
func newResultStart(id json.RawMessage) []byte {
	const head, middle = `{"jsonrpc":"2.0","id":`, `,"result":`
	start := make([]byte, 0, len(head)+len(id)+len(middle))
	return append(append(append(start, head...), id...), middle...)
}

// replyPieces returns the message of a reply in pieces, to avoid a copy of a large result.
func replyPieces(id json.RawMessage, r *session.Reply) [5][]byte {
	switch {
	case r.Error != nil:
		return [5][]byte{newErrorMessage(id, r.Error)}
	case r.Front == nil:
		return [5][]byte{newResultStart(id), r.Result, r.Back, closing}
	}
	return [5][]byte{newResultStart(id), r.Front, bytes.TrimLeft(r.Result[1:], " \t\r\n"), r.Back, closing}
}

// appendReply appends the message of a reply.
func appendReply(dst []byte, id json.RawMessage, r *session.Reply) []byte {
	for _, p := range replyPieces(id, r) {
		dst = append(dst, p...)
	}
	return dst
}

// newErrorMessage returns an error message. It omits an unknown ID: in MCP it is optional and never null.
func newErrorMessage(id json.RawMessage, e *wirejson.RPCError) []byte {
	text := wirejson.AppendError(nil, id, e)
	if id == nil {
		text = bytes.Replace(text, []byte(`"id":null,`), nil, 1)
	}
	return text
}

// toRPCError returns an error of package wirejson as an *RPCError.
func toRPCError(err error) *wirejson.RPCError {
	if e, ok := errors.AsType[*wirejson.RPCError](err); ok {
		return e
	}
	return &wirejson.RPCError{Code: wirejson.CodeInvalidRequest, Message: err.Error()}
}
