package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"mcpproxy/internal/jsonrpc"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/rawjson"
)

// message is one message of the client.
type message struct {
	jsonrpc.Message
	body    []byte
	version string      // the revision a modern request says of itself; else ""
	mirrors []mcp.Field // the arguments that are repeated in headers
}

// metaVersion is the revision that the params say of themselves: only requests
// of the modern era do.
func metaVersion(params json.RawMessage) string {
	if rawjson.Kind(params) != '{' {
		return ""
	}
	meta := rawjson.Find(params, "_meta")
	if rawjson.Kind(meta) != '{' {
		return ""
	}
	version, _ := rawjson.String(rawjson.Find(meta, mcp.MetaVersion))
	return version
}

// describe sets the headers that mirror a modern request.
func (m *message) describe(h http.Header) {
	h.Set(mcp.HeaderVersion, m.version)
	h.Set(mcp.HeaderMethod, m.Method)
	member := ""
	switch {
	case m.Method == mcp.CallTool, m.Method == mcp.GetPrompt:
		member = "name"
	case m.Method == mcp.ReadResource:
		member = "uri"
	case strings.HasPrefix(m.Method, mcp.Tasks):
		member = "taskId"
	default:
		return
	}
	for _, f := range m.mirrors {
		h.Set(f.Name, f.Value)
	}
	if name, ok := rawjson.String(rawjson.Find(m.Params, member)); ok {
		h.Set(mcp.HeaderName, mcp.HeaderText(name))
	}
}

// tool is the name of the tool that a modern request calls, "" when it calls
// none.
func (m *message) tool() string {
	if m.version == "" || m.Method != mcp.CallTool {
		return ""
	}
	name, _ := rawjson.String(rawjson.Find(m.Params, "name"))
	return name
}

// request asks the daemon and gives the answer for the client: that of the
// daemon, or an error that says why there is none. What comes before the
// answer in its stream is written on the way. It is nil when ctx has ended.
func (b *bridge) request(ctx context.Context, msg *message) []byte {
	b.mirror(msg)
	answer, err := b.ask(ctx, msg)
	if err == nil && wantsMirrors(msg, answer) && b.learn(ctx, msg) {
		b.mirror(msg)
		answer, err = b.ask(ctx, msg)
	}
	switch {
	case err == nil:
		b.remember(msg, answer)
		return answer
	case ctx.Err() != nil:
		return nil
	}
	return jsonrpc.AppendError(nil, msg.ID, explain(err))
}

// ask makes a request, in a new session when the daemon does not know the old
// one any more: then it has not looked at the request.
func (b *bridge) ask(ctx context.Context, msg *message) ([]byte, error) {
	s := b.current(msg)
	resp, err := b.post(ctx, msg, s)
	if err == nil && s != nil && resp.StatusCode == http.StatusNotFound {
		discard(resp)
		if s, err = b.renew(ctx, s); err == nil {
			resp, err = b.post(ctx, msg, s)
		}
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	return b.answer(resp, msg.ID)
}

// current is the session that a message belongs to, nil when it needs none.
func (b *bridge) current(msg *message) *session {
	if msg.version != "" {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.session
}

// post sends a message. Where no daemon is there, one is started.
func (b *bridge) post(ctx context.Context, msg *message, s *session) (*http.Response, error) {
	resp, err := b.send(ctx, http.MethodPost, msg, s)
	if err == nil || !notThere(err) || ctx.Err() != nil {
		return resp, err
	}
	if err := b.Start(ctx); err != nil {
		return nil, err
	}
	return b.send(ctx, http.MethodPost, msg, s)
}

// notThere says whether nothing answers at all, so that nothing was sent.
func notThere(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

func (b *bridge) send(ctx context.Context, method string, msg *message, s *session) (*http.Response, error) {
	var body io.Reader
	if msg != nil {
		body = bytes.NewReader(msg.body)
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://localhost"+b.Path, body)
	if err != nil {
		return nil, err
	}
	r.Header.Set("User-Agent", b.UserAgent)
	r.Header.Set("Accept", "text/event-stream")
	if msg != nil {
		r.Header.Set("Accept", "application/json, text/event-stream")
		r.Header.Set("Content-Type", "application/json")
		if msg.version != "" {
			msg.describe(r.Header)
		}
	}
	if s != nil {
		r.Header.Set(mcp.HeaderSession, s.id)
		r.Header.Set(mcp.HeaderVersion, s.version)
		if s.lastEvent != "" && msg == nil {
			r.Header.Set("Last-Event-Id", s.lastEvent)
		}
	}
	return b.http.Do(r)
}

// answer reads what the daemon answers to the request with the id.
func (b *bridge) answer(resp *http.Response, id json.RawMessage) ([]byte, error) {
	if isEvents(resp) {
		return b.answerInEvents(resp, id)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxMessage+1))
	switch {
	case err != nil:
		return nil, err
	case len(body) > maxMessage:
		return nil, errTooLarge
	}
	m, err := jsonrpc.Parse(body)
	switch {
	case err != nil || !m.IsResponse():
		return nil, fmt.Errorf("it answered with HTTP status %d and no message of MCP", resp.StatusCode)
	case m.Error != nil && !bytes.Equal(m.ID, id):
		return jsonrpc.AppendError(nil, id, m.Error), nil // it was refused before its id was read
	}
	return body, nil
}

var (
	errTooLarge = fmt.Errorf("the answer is larger than %d bytes", maxMessage)
	errCutOff   = errors.New("the answer broke off")
)

// answerInEvents passes on what a stream says, up to the answer.
func (b *bridge) answerInEvents(resp *http.Response, id json.RawMessage) ([]byte, error) {
	events := jsonrpc.NewEventReader(resp.Body, maxMessage)
	for {
		ev, err := events.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil, errCutOff
		case errors.Is(err, jsonrpc.ErrTooLong):
			return nil, errTooLarge
		case err != nil:
			return nil, err
		case len(ev.Data) == 0:
			continue
		}
		m, err := jsonrpc.Parse(ev.Data)
		if err == nil && m.IsResponse() && bytes.Equal(m.ID, id) {
			return bytes.Clone(ev.Data), nil
		}
		if err == nil {
			b.out.write(ev.Data)
		}
	}
}

func isEvents(resp *http.Response) bool {
	kind, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	return resp.StatusCode == http.StatusOK && strings.EqualFold(strings.TrimSpace(kind), "text/event-stream")
}

// discard reads what is left of a small body, so that the connection can be
// used again.
func discard(resp *http.Response) {
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10)
	_ = resp.Body.Close()
}

// explain is why a request has no answer, for the client.
func explain(err error) *jsonrpc.Error {
	e := &jsonrpc.Error{Code: jsonrpc.CodeInternal}
	var p *problem.Problem
	switch {
	case errors.As(err, &p):
		e.Message = strings.TrimSpace(p.Message + " " + p.Hint)
	case notThere(err):
		e.Message = "MCPProxy does not run and could not be started: " + err.Error()
	default:
		e.Message = "MCPProxy gave no answer: " + err.Error() + ". The request may have been carried out: check before you try again."
	}
	return e
}

// tellTime is how long the daemon may take to accept a message that has no
// answer. The ones behind it wait for that.
const tellTime = 10 * time.Second

// tell hands on a notification, or the answer to a request of the server.
func (b *bridge) tell(ctx context.Context, msg *message) {
	s := b.current(msg)
	if s == nil {
		return // the modern era has none
	}
	ctx, cancel := context.WithTimeout(ctx, tellTime)
	defer cancel()
	resp, err := b.post(ctx, msg, s)
	if err != nil {
		b.Logger.Warn("a message could not be handed on", "method", msg.Method, "error", err)
		return
	}
	discard(resp)
	if msg.Method == mcp.Initialized {
		b.listen(s)
	}
}

// takeBatch hands on a batch, which one revision has, in an exchange of its own.
func (b *bridge) takeBatch(ctx context.Context, data []byte) {
	b.wg.Go(func() {
		msg := &message{body: data}
		answer, err := b.batch(ctx, msg, b.current(msg))
		switch {
		case ctx.Err() != nil:
		case err != nil:
			b.out.write(refuseAll(data, explain(err)))
		case len(answer) > 0:
			b.out.write(answer)
		}
	})
}

// batch sends a batch and gives its answers, which are none when it holds
// notifications only.
func (b *bridge) batch(ctx context.Context, msg *message, s *session) ([]byte, error) {
	resp, err := b.post(ctx, msg, s)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxMessage+1))
	switch {
	case err != nil:
		return nil, err
	case len(body) > maxMessage:
		return nil, errTooLarge
	case len(body) > 0 && !json.Valid(body):
		return nil, fmt.Errorf("it answered with HTTP status %d and no message of MCP", resp.StatusCode)
	}
	return body, nil
}

// refuseAll answers each request of a batch with the same error.
func refuseAll(batch []byte, e *jsonrpc.Error) []byte {
	var out []byte
	_ = rawjson.Elements(batch, func(element []byte) error { // what is no array is answered once
		if m, err := jsonrpc.Parse(element); err == nil && m.IsRequest() {
			out = jsonrpc.AppendError(append(out, ','), m.ID, e)
		}
		return nil
	})
	if out == nil {
		return appendError(nil, e)
	}
	out[0] = '['
	return append(out, ']')
}
