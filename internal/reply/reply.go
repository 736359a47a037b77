// Package reply writes what MCPProxy itself says in MCP: who it is, the results
// of its own tools, problems as results of tools or errors of the protocol, and
// what a modern result has besides what a server has said.
//
// It guarantees that the same problem reads the same on every surface, that the
// text of a refusal says by itself what helps to mend the call, that a server's
// result is not copied to get a few members more, and that an internal error is
// logged, and the client gets no details. It answers no request itself.
package reply

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"mcpproxy/internal/jsonrpc"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/rawjson"
	"mcpproxy/internal/session"
)

// MaxIdentity bounds, in bytes, what a client says of itself and what of a
// request is repeated to it.
const MaxIdentity = 128

// Writer writes replies. Nobody writes to its texts.
type Writer struct {
	// ServerInfo is who MCPProxy is, as the object; Introduction is the member
	// of _meta that says it.
	ServerInfo, Introduction string

	front  map[begun][]byte // of a modern result
	logger *slog.Logger
}

// begun is what a server has said of a modern result that has to be there.
type begun struct{ typed, named bool }

// New makes a Writer.
func New(version string, logger *slog.Logger) *Writer {
	info := string(append(rawjson.AppendString([]byte(`{"name":"mcpproxy","title":"MCPProxy","version":`), []byte(version)), '}'))
	w := &Writer{ServerInfo: info, Introduction: `"` + mcp.MetaServerInfo + `":` + info, logger: logger}
	const typed = `"resultType":"complete",`
	named := `"_meta":{` + w.Introduction + `},`
	w.front = map[begun][]byte{
		{}: []byte(`{` + typed + named), {named: true}: []byte(`{` + typed),
		{typed: true}: []byte(`{` + named), {true, true}: []byte(`{`),
	}
	return w
}

var opening, closing = []byte("{"), []byte("}") // never written to

// Front returns how a result of our own begins.
func (w *Writer) Front(modern bool) []byte {
	if modern {
		return w.front[begun{}]
	}
	return opening
}

// Passed returns an upstream's result as it is, with what the modern era demands
// of every result added where the upstream has not said it.
func (w *Writer) Passed(modern bool, raw json.RawMessage) session.Reply {
	if !modern {
		return session.Reply{Result: raw}
	}
	// Most results have neither member, and looking for the names is faster
	// than walking over a large result.
	typed := bytes.Contains(raw, resultTypeName) && rawjson.Find(raw, "resultType") != nil
	named := false
	if bytes.Contains(raw, metaName) {
		if own := rawjson.Find(raw, "_meta"); own != nil {
			named = true
			raw = w.introduce(raw, own)
		}
	}
	front := w.front[begun{typed, named}]
	raw = raw[bytes.IndexByte(raw, '{'):]
	if inside := bytes.TrimLeft(raw[1:], " \t\r\n"); len(inside) > 0 && inside[0] == '}' && len(front) > 1 {
		front = front[:len(front)-1] // no comma before the end
	}
	return session.Reply{Front: front, Result: raw}
}

var (
	resultTypeName = []byte(`"resultType"`) // never written to
	metaName       = []byte(`"_meta"`)
)

// introduce puts our name into the _meta that a result has already.
func (w *Writer) introduce(raw, own json.RawMessage) json.RawMessage {
	if rawjson.Kind(own) != '{' || rawjson.Find(own, mcp.MetaServerInfo) != nil {
		return raw
	}
	return rawjson.SetMember(raw, "_meta", rawjson.SetMember(own, mcp.MetaServerInfo, []byte(w.ServerInfo)))
}

// Tool returns the result of a built-in tool, an object: the same JSON as
// structured content and as text.
func (w *Writer) Tool(modern bool, answer json.RawMessage) session.Reply {
	text := make([]byte, 0, len(answer)+len(answer)/4+256)
	text = append(append(text, w.Front(modern)...), `"content":[{"type":"text","text":`...)
	text = append(rawjson.AppendString(text, answer), `}],"structuredContent":{`...)
	return session.Reply{Front: text, Result: answer, Back: closing}
}

// Refusal returns a problem as the result of a tool, for the model to read.
func (w *Writer) Refusal(modern bool, err error) session.Reply {
	p := problem.From(err)
	if p.Code == problem.Internal && !errors.Is(err, context.Canceled) {
		w.logger.Error("a tool failed", "error", p.Cause)
	}
	detail, err := json.Marshal(p)
	if err != nil {
		detail, _ = json.Marshal(problem.New(p.Code, p.Message, p.Hint))
	}
	out := append(make([]byte, 0, 2*len(detail)+192), w.Front(modern)...)
	out = rawjson.AppendString(append(out, `"content":[{"type":"text","text":`...), text(p))
	out = append(append(out, `}],"structuredContent":{"error":`...), detail...)
	return session.Reply{Result: append(out, `},"isError":true}`...)}
}

// Problem returns why a request that was to be passed on has no answer: for the
// model to read where a tool was called, else as an error of the protocol.
func (w *Writer) Problem(modern bool, method string, err error) session.Reply {
	p := problem.From(err)
	if method == mcp.CallTool && p.Code != problem.ToolNotFound && p.Code != problem.InvalidName && p.Code != problem.ServerNotFound {
		return w.Refusal(modern, err)
	}
	status, said := SaidStatus(modern, p)
	switch {
	case said:
	case p.Code == problem.ServerNotFound:
		status = http.StatusNotFound
	case modern && p.Code.JSONRPC() == jsonrpc.CodeInvalidParams:
		status = http.StatusBadRequest
	default:
		status = http.StatusOK
	}
	return session.Reply{Error: w.Error(err), Status: status}
}

// SaidStatus returns the HTTP status with which a server has refused a request,
// where that is for the client. Our credentials are not for the client, and in a
// session a 404 would end it.
func SaidStatus(modern bool, p *problem.Problem) (status int, ok bool) {
	status, _ = p.Detail("http_status").(int)
	switch {
	case status < 400, status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusNotFound && !modern:
		return 0, false
	}
	return status, true
}

// Error returns a problem as an error of the protocol.
func (w *Writer) Error(err error) *jsonrpc.Error {
	p := problem.From(err)
	if p.Code == problem.Internal && !errors.Is(err, context.Canceled) && !errors.Is(err, session.ErrOver) {
		w.logger.Error("a request could not be passed on", "error", p.Cause)
	}
	message := p.Message
	if p.Hint != "" {
		message = strings.TrimSuffix(message, ".") + ". " + p.Hint
	}
	data := rawjson.AppendString([]byte(`{"code":`), []byte(p.Code))
	if status, ok := p.Detail("status").(string); ok {
		data = rawjson.AppendString(append(data, `,"status":`...), []byte(status))
	}
	return &jsonrpc.Error{Code: p.Code.JSONRPC(), Message: message, Data: append(data, '}')}
}

// Subscription returns the member _meta that names the subscription which a request
// has opened, without its closing brace, as events of the subscription have it.
func Subscription(listen *session.Request) string {
	return `"_meta":{"` + mcp.MetaSubscription + `":` + string(listen.ID)
}

// Wanted returns what a subscription asks for, the member notifications, nil when
// it is not there; bad is why it cannot be read.
func Wanted(listen *session.Request) (wanted json.RawMessage, bad *jsonrpc.Error) {
	wanted = rawjson.Find(listen.Params, "notifications")
	if wanted != nil && rawjson.Kind(wanted) != '{' {
		return nil, InvalidParams("params.notifications must be an object")
	}
	return wanted, nil
}

// Acknowledge tells a subscriber what it will get, an object.
func Acknowledge(listen *session.Request, agreed string) {
	listen.Say(session.Event{Method: mcp.Acknowledged, Params: []byte(`{` + Subscription(listen) + `},"notifications":` + agreed + `}`)})
}

// settleTime is how long changes are collected before they are announced: when
// a server comes or goes there are many at once.
const settleTime = 100 * time.Millisecond

// Settled waits for a change, and then until it is time to announce it. Its error
// is ctx's.
func Settled(ctx context.Context, changed <-chan struct{}) error {
	select {
	case <-changed:
	case <-ctx.Done():
		return ctx.Err()
	}
	settle := time.NewTimer(settleTime)
	defer settle.Stop()
	select {
	case <-settle.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// End is the result of a subscription that is over.
func (w *Writer) End(listen *session.Request) session.Reply {
	return session.Reply{Result: []byte(`{"resultType":"complete",` + Subscription(listen) + `,` + w.Introduction + `}}`)}
}

// Version returns the revision of a session that MCPProxy itself has with a
// client, by the params of its initialize.
func Version(initialize json.RawMessage) string {
	asked, _ := rawjson.String(rawjson.Find(initialize, "protocolVersion"))
	if !mcp.IsLegacy(asked) {
		return mcp.Legacy
	}
	return asked
}

// InvalidParams returns what to say to a request that cannot be understood.
func InvalidParams(what string) *jsonrpc.Error { return Invalid("Invalid params: " + what) }

// Invalid returns the error of a request whose params are not what they must be.
func Invalid(message string) *jsonrpc.Error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: message}
}

// MethodNotFound returns what to say to a request that nobody answers.
func MethodNotFound(method string) session.Reply {
	return session.Reply{Error: &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "Method not found: " + rawjson.Clip(method, MaxIdentity)}}
}

// Quote repeats what a client sent, bounded.
func Quote(s string) string { return "'" + problem.Shown(s, 100) + "'" }
