package mcpserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"mcpproxy/internal/jsonrpc"
	"mcpproxy/internal/rawjson"
	"mcpproxy/internal/session"
)

// response writes the answer to one HTTP request.
type response struct {
	w      http.ResponseWriter
	id     json.RawMessage // of the message that is answered; nil when it is not known
	heads  []session.Field // what the server's answer has in its head
	stream *stream         // nil: the answer is plain JSON
	begun  bool            // the header of plain JSON is out
}

// takeHead keeps what a server's answer has in its head for ours.
func (a *response) takeHead(fields []session.Field) {
	a.heads = fields
	if a.stream != nil {
		a.stream.setHead(fields)
	}
}

// send answers with a reply, as plain JSON.
func (a *response) send(r *session.Reply) {
	status := r.Status
	if status == 0 && r.Error == nil {
		status = http.StatusOK
	}
	all := pieces(a.id, r)
	a.write(status, all[:]...)
}

// fail answers with an error and the given HTTP status.
func (a *response) fail(status int, e *jsonrpc.Error) { a.write(status, appendError(nil, a.id, e)) }

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
		return [5][]byte{appendError(nil, id, r.Error)}
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

// appendError is jsonrpc.AppendError, but leaves out an id that is not known:
// MCP has it optional and never null.
func appendError(dst []byte, id json.RawMessage, e *jsonrpc.Error) []byte {
	if id != nil {
		return jsonrpc.AppendError(dst, id, e)
	}
	dst = append(dst, `{"jsonrpc":"2.0","error":{"code":`...)
	dst = strconv.AppendInt(dst, int64(e.Code), 10)
	dst = append(dst, `,"message":`...)
	dst = rawjson.AppendString(dst, []byte(e.Message))
	if e.Data != nil {
		dst = append(append(dst, `,"data":`...), e.Data...)
	}
	return append(dst, "}}"...)
}

// asRPC returns an error of package jsonrpc as what it is.
func asRPC(err error) *jsonrpc.Error {
	var e *jsonrpc.Error
	if errors.As(err, &e) {
		return e
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: err.Error()}
}
