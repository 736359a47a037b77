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

// response writes the answer to one HTTP request.
type response struct {
	w      http.ResponseWriter
	id     json.RawMessage // of the message that is answered; nil when it is not known
	heads  []mcp.Field     // what the server's answer has in its head
	stream *stream         // nil: the answer is plain JSON
	begun  bool            // the header of plain JSON is out
}

// takeHead keeps what a server's answer has in its head for ours.
func (a *response) takeHead(fields []mcp.Field) {
	a.heads = fields
	if a.stream != nil {
		a.stream.setHead(fields)
	}
}

// send answers with a reply, as plain JSON.
func (a *response) send(r *session.Reply) {
	all := pieces(a.id, r)
	a.write(cmp.Or(r.Status, http.StatusOK), all[:]...)
}

// fail answers with an error and the given HTTP status.
func (a *response) fail(status int, e *wirejson.RPCError) { a.write(status, failure(a.id, e)) }

// accepted answers a message that wants no answer.
func (a *response) accepted() {
	a.w.Header()["Content-Length"] = noLength
	a.deliver(http.StatusAccepted)
}

// write sends a complete body, in pieces, so that a large result is not copied
// to get a few members more.
func (a *response) write(status int, pieces ...[]byte) {
	size := 0
	for _, p := range pieces {
		size += len(p)
	}
	h := a.w.Header()
	appendHead(h, a.heads)
	h["Content-Type"] = typeJSON
	h["Content-Length"] = []string{strconv.Itoa(size)}
	a.deliver(status, pieces...)
}

// deliver writes an answer, whose header is complete, all the way to the
// client. The deadline ends with the answer: the connection may be used for
// something else next.
func (a *response) deliver(status int, pieces ...[]byte) {
	a.begun = true
	rc := http.NewResponseController(a.w)
	limited := rc.SetWriteDeadline(time.Now().Add(writeTimeout)) == nil // not every writer can
	a.w.WriteHeader(status)
	for _, p := range pieces {
		if len(p) == 0 {
			continue
		}
		if _, err := a.w.Write(p); err != nil {
			return // the client has gone
		}
	}
	if limited && rc.Flush() == nil {
		_ = rc.SetWriteDeadline(time.Time{})
	}
}

var closing = []byte("}") // never written to

// appendStart is how a response begins, up to its result.
func appendStart(id json.RawMessage) []byte {
	const head, middle = `{"jsonrpc":"2.0","id":`, `,"result":`
	start := make([]byte, 0, len(head)+len(id)+len(middle))
	return append(append(append(start, head...), id...), middle...)
}

// pieces are the message that carries a reply: a large result is not copied to
// get a few members more.
func pieces(id json.RawMessage, r *session.Reply) [5][]byte {
	switch {
	case r.Error != nil:
		return [5][]byte{failure(id, r.Error)}
	case r.Front == nil:
		return [5][]byte{appendStart(id), r.Result, r.Back, closing}
	}
	return [5][]byte{appendStart(id), r.Front, bytes.TrimLeft(r.Result[1:], " \t\r\n"), r.Back, closing}
}

// appendReply appends the message that carries a reply.
func appendReply(dst []byte, id json.RawMessage, r *session.Reply) []byte {
	for _, p := range pieces(id, r) {
		dst = append(dst, p...)
	}
	return dst
}

// failure is the message that answers with an error. It leaves out an id that is
// not known: MCP has it optional and never null.
func failure(id json.RawMessage, e *wirejson.RPCError) []byte {
	text := wirejson.AppendError(nil, id, e)
	if id == nil {
		text = bytes.Replace(text, []byte(`"id":null,`), nil, 1)
	}
	return text
}

// asRPC returns an error of package wirejson as what it is.
func asRPC(err error) *wirejson.RPCError {
	if e, ok := errors.AsType[*wirejson.RPCError](err); ok {
		return e
	}
	return &wirejson.RPCError{Code: wirejson.CodeInvalidRequest, Message: err.Error()}
}
