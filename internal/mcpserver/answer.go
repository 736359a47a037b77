package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"mcpproxy/internal/jsonrpc"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/strictjson"
)

// maxIdentity bounds, in bytes, what a client says of itself and what of a
// request is repeated to it.
const maxIdentity = 128

// writeTimeout is how long a client may take to read an answer. Any answer may
// find the buffers of its connection full, a small one too.
const writeTimeout = 30 * time.Second

// body is JSON in pieces that are written one after the other, so that a large
// result is not copied to get a few members more.
type body struct {
	parts [8][]byte
	n     int
}

func pieces(parts ...[]byte) body {
	var b body
	b.n = copy(b.parts[:], parts)
	return b
}

func (b *body) add(part []byte) {
	b.parts[b.n] = part
	b.n++
}

func (b *body) list() [][]byte { return b.parts[:b.n] }

func (b *body) size() int {
	n := 0
	for _, p := range b.list() {
		n += len(p)
	}
	return n
}

// outcome is what a request came to: a result or an error.
type outcome struct {
	result body
	err    *jsonrpc.Error
	status int  // of HTTP, where it is not the one that follows from err; 0 = it is
	over   bool // the server has ended the session that the request is of
}

// status is the HTTP status of an outcome: the modern era mirrors the errors
// of the protocol, the other one tells them in the body alone.
func (x *exchange) status(e *jsonrpc.Error) int {
	if !x.modern {
		return http.StatusOK
	}
	switch e.Code {
	case jsonrpc.CodeMethodNotFound:
		return http.StatusNotFound
	case jsonrpc.CodeInternal:
		return http.StatusOK
	}
	return http.StatusBadRequest
}

// send answers with an outcome, as plain JSON.
func (x *exchange) send(o outcome) {
	switch {
	case o.status == 0 && o.err != nil:
		o.status = x.status(o.err)
	case o.status == 0:
		o.status = http.StatusOK
	}
	if o.err != nil {
		x.fail(o.status, o.err)
		return
	}
	x.write(o.status, envelope(x.msg.ID, o.result))
}

// append appends the whole message that carries an outcome.
func (o *outcome) append(dst []byte, id json.RawMessage) []byte {
	if o.err != nil {
		return appendError(dst, id, o.err)
	}
	b := envelope(id, o.result)
	for _, p := range b.list() {
		dst = append(dst, p...)
	}
	return dst
}

// envelope puts the members of a response around a result.
func envelope(id json.RawMessage, result body) body {
	const head, middle = `{"jsonrpc":"2.0","id":`, `,"result":`
	start := make([]byte, 0, len(head)+len(id)+len(middle))
	start = append(append(append(start, head...), id...), middle...)
	var b body
	b.add(start)
	b.n += copy(b.parts[b.n:len(b.parts)-1], result.list())
	b.add(closing)
	return b
}

var closing = []byte("}") // never written to

// appendError is jsonrpc.AppendError, but leaves out an id that is not known:
// MCP has it optional and never null.
func appendError(dst []byte, id json.RawMessage, e *jsonrpc.Error) []byte {
	if id != nil {
		return jsonrpc.AppendError(dst, id, e)
	}
	dst = append(dst, `{"jsonrpc":"2.0","error":{"code":`...)
	dst = strconv.AppendInt(dst, int64(e.Code), 10)
	dst = append(dst, `,"message":`...)
	dst = appendText(dst, []byte(e.Message))
	if e.Data != nil {
		dst = append(append(dst, `,"data":`...), e.Data...)
	}
	return append(dst, "}}"...)
}

// fail answers with an error and the given HTTP status.
func (x *exchange) fail(status int, e *jsonrpc.Error) {
	x.write(status, pieces(appendError(nil, x.msg.ID, e)))
}

// accepted answers a message that wants no answer.
func (x *exchange) accepted() {
	x.answered = true
	x.w.Header()["Content-Length"] = noLength
	x.deliver(http.StatusAccepted, nil)
}

// Shared header values; nobody writes to them.
var (
	typeJSON    = []string{"application/json"}
	typeEvents  = []string{"text/event-stream"}
	noCache     = []string{"no-cache"}
	noBuffering = []string{"no"}
	noLength    = []string{"0"}
)

// write sends a complete body.
func (x *exchange) write(status int, b body) {
	x.answered = true
	size := b.size()
	h := x.w.Header()
	appendHead(h, x.heads)
	h["Content-Type"] = typeJSON
	h["Content-Length"] = []string{strconv.Itoa(size)}
	x.deliver(status, b.list())
}

// deliver writes an answer, whose header is complete, all the way to the
// client. The deadline ends with the answer: the connection may be used for
// something else next.
func (x *exchange) deliver(status int, parts [][]byte) {
	rc := http.NewResponseController(x.w)
	limited := rc.SetWriteDeadline(time.Now().Add(writeTimeout)) == nil // not every writer can
	x.w.WriteHeader(status)
	for _, p := range parts {
		if _, err := x.w.Write(p); err != nil {
			return // the client has gone
		}
	}
	if limited && rc.Flush() == nil {
		_ = rc.SetWriteDeadline(time.Time{})
	}
}

// asRPC gives an error of package jsonrpc as what it is.
func asRPC(err error) *jsonrpc.Error {
	var e *jsonrpc.Error
	if errors.As(err, &e) {
		return e
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: err.Error()}
}

// toolResult is an upstream's result as it is, with what the modern era
// demands of every result added where the upstream has not said it.
func (x *exchange) toolResult(raw json.RawMessage) body {
	if !x.modern {
		return pieces(raw)
	}
	// Most results have neither member, and looking for the names is faster
	// than walking over a large result.
	typed := bytes.Contains(raw, resultTypeName) && strictjson.Find(raw, "resultType") != nil
	named := false
	if bytes.Contains(raw, metaName) {
		if own := strictjson.Find(raw, "_meta"); own != nil {
			named = true
			raw = x.s.texts.introduce(raw, own)
		}
	}
	front := x.s.texts.front[index(typed)][index(named)]
	inside := bytes.TrimLeft(raw[bytes.IndexByte(raw, '{')+1:], " \t\r\n")
	if len(inside) > 0 && inside[0] == '}' && len(front) > 1 {
		front = front[:len(front)-1] // no comma before the end
	}
	return pieces(front, inside)
}

var (
	resultTypeName = []byte(`"resultType"`) // never written to
	metaName       = []byte(`"_meta"`)
)

// introduce puts our name into the _meta that a result has already.
func (t *texts) introduce(raw, own json.RawMessage) json.RawMessage {
	if strictjson.Kind(own) != '{' || strictjson.Find(own, metaServerInfo) != nil {
		return raw
	}
	return jsonrpc.SetMember(raw, "_meta", jsonrpc.SetMember(own, metaServerInfo, t.serverInfo))
}

// ownResult is the result of a built-in tool: the same JSON as structured
// content and as text.
func (x *exchange) ownResult(answer json.RawMessage) body {
	text := make([]byte, 0, len(answer)+len(answer)/4+64)
	text = append(text, `"content":[{"type":"text","text":`...)
	text = appendText(text, answer)
	text = append(text, `}],"structuredContent":`...)
	return pieces(x.ownFront(), text, answer, closing)
}

// refusal is a problem as the result of a tool, for the model to read.
func (x *exchange) refusal(err error) body {
	p := problem.From(err)
	if p.Code == problem.Internal && !errors.Is(err, context.Canceled) {
		x.s.Logger.Error("a built-in tool failed", "error", p.Cause)
	}
	detail, err := json.Marshal(p)
	if err != nil {
		detail, _ = json.Marshal(problem.New(p.Code, p.Message, p.Hint))
	}
	text := append(make([]byte, 0, len(detail)+len(p.Message)+96), `"content":[{"type":"text","text":`...)
	text = appendText(text, []byte(p.Message))
	text = append(text, `}],"structuredContent":{"error":`...)
	text = append(text, detail...)
	text = append(text, `},"isError":true}`...)
	return pieces(x.ownFront(), text)
}

// ownFront is how a result of our own begins.
func (x *exchange) ownFront() []byte {
	if x.modern {
		return x.s.texts.front[0][0]
	}
	return opening
}

var opening = []byte("{") // never written to

func index(b bool) int {
	if b {
		return 1
	}
	return 0
}
