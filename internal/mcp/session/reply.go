package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
)

// MaxIdentity bounds, in bytes, what a client says of itself and what of a
// request is repeated to it.
const MaxIdentity = 128

// ReplyWriter writes replies. Nobody writes to its texts.
type ReplyWriter struct {
	// ServerInfo is who MCPProxy is, as the object; Introduction is the member
	// of _meta that says it.
	ServerInfo, Introduction string

	front  map[begun][]byte // of a modern result
	logger *slog.Logger
}

// begun is what a server has said of a modern result that has to be there.
type begun struct{ typed, named bool }

// NewReplyWriter makes a Writer.
func NewReplyWriter(version string, logger *slog.Logger) *ReplyWriter {
	info := string(append(wirejson.AppendString([]byte(`{"name":"mcpproxy","title":"MCPProxy","version":`), []byte(version)), '}'))
	w := &ReplyWriter{ServerInfo: info, Introduction: `"` + mcp.MetaServerInfo + `":` + info, logger: logger}
	const typed = `"resultType":"complete",`
	named := `"_meta":{` + w.Introduction + `},`
	w.front = map[begun][]byte{
		{}: []byte(`{` + typed + named), {named: true}: []byte(`{` + typed),
		{typed: true}: []byte(`{` + named), {true, true}: []byte(`{`),
	}
	return w
}

var opening, replyClosing = []byte("{"), []byte("}") // never written to

// Front returns how a result of our own begins.
func (w *ReplyWriter) Front(modern bool) []byte {
	if modern {
		return w.front[begun{}]
	}
	return opening
}

// Passed returns an upstream's result as it is, with what the modern era demands
// of every result added where the upstream has not said it.
func (w *ReplyWriter) Passed(modern bool, raw json.RawMessage) Reply {
	if !modern {
		return Reply{Result: raw}
	}
	// Most results have neither member, and looking for the names is faster
	// than walking over a large result.
	typed := bytes.Contains(raw, resultTypeName) && wirejson.Find(raw, "resultType") != nil
	named := false
	if bytes.Contains(raw, metaName) {
		if own := wirejson.Find(raw, "_meta"); own != nil {
			named = true
			raw = w.introduce(raw, own)
		}
	}
	front := w.front[begun{typed, named}]
	raw = raw[bytes.IndexByte(raw, '{'):]
	if inside := bytes.TrimLeft(raw[1:], " \t\r\n"); len(inside) > 0 && inside[0] == '}' && len(front) > 1 {
		front = front[:len(front)-1] // no comma before the end
	}
	return Reply{Front: front, Result: raw}
}

var (
	resultTypeName = []byte(`"resultType"`) // never written to
	metaName       = []byte(`"_meta"`)
)

// introduce puts our name into the _meta that a result has already.
func (w *ReplyWriter) introduce(raw, own json.RawMessage) json.RawMessage {
	if wirejson.Kind(own) != '{' || wirejson.Find(own, mcp.MetaServerInfo) != nil {
		return raw
	}
	return wirejson.SetMember(raw, "_meta", wirejson.SetMember(own, mcp.MetaServerInfo, []byte(w.ServerInfo)))
}

// Tool returns the result of a built-in tool, an object: the same JSON as
// structured content and as text.
func (w *ReplyWriter) Tool(modern bool, answer json.RawMessage) Reply {
	text := make([]byte, 0, len(answer)+len(answer)/4+256)
	text = append(append(text, w.Front(modern)...), `"content":[{"type":"text","text":`...)
	text = append(wirejson.AppendString(text, answer), `}],"structuredContent":{`...)
	return Reply{Front: text, Result: answer, Back: replyClosing}
}

// Refusal returns a problem as the result of a tool, for the model to read.
func (w *ReplyWriter) Refusal(modern bool, err error) Reply {
	p := problem.From(err)
	if p.Code == problem.Internal && !errors.Is(err, context.Canceled) {
		w.logger.Error("a tool failed", "error", p.Cause)
	}
	detail, err := json.Marshal(p)
	if err != nil {
		detail, _ = json.Marshal(problem.New(p.Code, p.Message, p.Hint))
	}
	out := append(make([]byte, 0, 2*len(detail)+192), w.Front(modern)...)
	out = wirejson.AppendString(append(out, `"content":[{"type":"text","text":`...), text(p))
	out = append(append(out, `}],"structuredContent":{"error":`...), detail...)
	return Reply{Result: append(out, `},"isError":true}`...)}
}

// Problem returns why a request that was to be passed on has no answer: for the
// model to read where a tool was called, else as an error of the protocol.
func (w *ReplyWriter) Problem(modern bool, method string, err error) Reply {
	p := problem.From(err)
	if method == mcp.CallTool && p.Code != problem.ToolNotFound && p.Code != problem.InvalidName && p.Code != problem.ServerNotFound {
		return w.Refusal(modern, err)
	}
	status, said := SaidStatus(modern, p)
	switch {
	case said:
	case p.Code == problem.ServerNotFound:
		status = http.StatusNotFound
	case modern && p.Code.JSONRPC() == wirejson.CodeInvalidParams:
		status = http.StatusBadRequest
	default:
		status = http.StatusOK
	}
	return Reply{Error: w.Error(err), Status: status}
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
func (w *ReplyWriter) Error(err error) *wirejson.RPCError {
	p := problem.From(err)
	if p.Code == problem.Internal && !errors.Is(err, context.Canceled) && !errors.Is(err, ErrOver) {
		w.logger.Error("a request could not be passed on", "error", p.Cause)
	}
	message := p.Message
	if p.Hint != "" {
		message = strings.TrimSuffix(message, ".") + ". " + p.Hint
	}
	data := wirejson.AppendString([]byte(`{"code":`), []byte(p.Code))
	if status, ok := p.Detail("status").(string); ok {
		data = wirejson.AppendString(append(data, `,"status":`...), []byte(status))
	}
	return &wirejson.RPCError{Code: p.Code.JSONRPC(), Message: message, Data: append(data, '}')}
}

// Subscription returns the member _meta that names the subscription which a request
// has opened, without its closing brace, as events of the subscription have it.
func Subscription(listen *Request) string {
	return `"_meta":{"` + mcp.MetaSubscription + `":` + string(listen.ID)
}

// WantedEvents returns what a subscription asks for, the member notifications, nil when
// it is not there; bad is why it cannot be read.
func WantedEvents(listen *Request) (wanted json.RawMessage, bad *wirejson.RPCError) {
	wanted = wirejson.Find(listen.Params, "notifications")
	if wanted != nil && wirejson.Kind(wanted) != '{' {
		return nil, InvalidParams("params.notifications must be an object")
	}
	return wanted, nil
}

// Acknowledge tells a subscriber what it will get, an object.
func Acknowledge(listen *Request, agreed string) {
	listen.Say(Event{Method: mcp.Acknowledged, Params: []byte(`{` + Subscription(listen) + `},"notifications":` + agreed + `}`)})
}

// settleTime is how long changes are collected before they are announced: when
// a server comes or goes there are many at once.
const settleTime = 100 * time.Millisecond

// AwaitSettled waits for a change, and then until it is time to announce it. Its error
// is ctx's.
func AwaitSettled(ctx context.Context, changed <-chan struct{}) error {
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
func (w *ReplyWriter) End(listen *Request) Reply {
	return Reply{Result: []byte(`{"resultType":"complete",` + Subscription(listen) + `,` + w.Introduction + `}}`)}
}

// RequestedVersion returns the revision of a session that MCPProxy itself has with a
// client, by the params of its initialize.
func RequestedVersion(initialize json.RawMessage) string {
	asked, _ := wirejson.String(wirejson.Find(initialize, "protocolVersion"))
	if !mcp.IsLegacy(asked) {
		return mcp.Legacy
	}
	return asked
}

// InvalidParams returns what to say to a request that cannot be understood.
func InvalidParams(what string) *wirejson.RPCError { return InvalidRequest("Invalid params: " + what) }

// InvalidRequest returns the error of a request whose params are not what they must be.
func InvalidRequest(message string) *wirejson.RPCError {
	return &wirejson.RPCError{Code: wirejson.CodeInvalidParams, Message: message}
}

// MethodNotFound returns what to say to a request that nobody answers.
func MethodNotFound(method string) Reply {
	return Reply{Error: &wirejson.RPCError{Code: wirejson.CodeMethodNotFound, Message: "Method not found: " + wirejson.Clip(method, MaxIdentity)}}
}

// QuoteText repeats what a client sent, bounded.
func QuoteText(s string) string { return "'" + problem.Shown(s, 100) + "'" }
