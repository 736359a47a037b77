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

// MaxIdentity limits, in bytes, each text in which a client describes itself, and each text of a request that is
// repeated to the client.
const MaxIdentity = 128

// ReplyBuilder builds MCPProxy's own replies. It sends nothing. Its byte slices are never modified.
type ReplyBuilder struct {
	// ServerInfo is MCPProxy's serverInfo object. MetaMember is the member of _meta that contains it.
	ServerInfo, MetaMember string

	resultStarts map[presentResultMembers][]byte // prefixes of a modern result
	logger       *slog.Logger
}

// presentResultMembers records which of the required members of a modern result a server has sent.
type presentResultMembers struct{ resultType, serverInfo bool }

// NewReplyBuilder returns a ReplyBuilder.
func NewReplyBuilder(version string, logger *slog.Logger) *ReplyBuilder {
	info := string(append(wirejson.AppendString([]byte(`{"name":"mcpproxy","title":"MCPProxy","version":`), []byte(version)), '}'))
	w := &ReplyBuilder{ServerInfo: info, MetaMember: `"` + mcp.MetaServerInfo + `":` + info, logger: logger}
	const typed = `"resultType":"complete",`
	named := `"_meta":{` + w.MetaMember + `},`
	w.resultStarts = map[presentResultMembers][]byte{
		{}: []byte(`{` + typed + named), {serverInfo: true}: []byte(`{` + typed),
		{resultType: true}: []byte(`{` + named), {true, true}: []byte(`{`),
	}
	return w
}

var openBrace, closeBrace = []byte("{"), []byte("}") // never modified

// ResultPrefix returns the beginning of MCPProxy's own result.
func (w *ReplyBuilder) ResultPrefix(modern bool) []byte {
	if modern {
		return w.resultStarts[presentResultMembers{}]
	}
	return openBrace
}

// NewForwardedReply returns a server's result unchanged, with the missing members that the modern protocol requires
// of every result.
func (w *ReplyBuilder) NewForwardedReply(modern bool, raw json.RawMessage) Reply {
	if !modern {
		return Reply{Result: raw}
	}
	// Most results have neither member, and searching for the names is faster than parsing a large result.
	typed := bytes.Contains(raw, resultTypeName) && wirejson.Find(raw, "resultType") != nil
	named := false
	if bytes.Contains(raw, metaName) {
		if own := wirejson.Find(raw, "_meta"); own != nil {
			named = true
			raw = w.addServerInfo(raw, own)
		}
	}
	front := w.resultStarts[presentResultMembers{typed, named}]
	raw = raw[bytes.IndexByte(raw, '{'):]
	if inside := bytes.TrimLeft(raw[1:], " \t\r\n"); len(inside) > 0 && inside[0] == '}' && len(front) > 1 {
		front = front[:len(front)-1] // no comma before the end
	}
	return Reply{Front: front, Result: raw}
}

var (
	resultTypeName = []byte(`"resultType"`) // never modified
	metaName       = []byte(`"_meta"`)
)

// addServerInfo adds MCPProxy's serverInfo to an existing _meta.
func (w *ReplyBuilder) addServerInfo(raw, own json.RawMessage) json.RawMessage {
	if wirejson.Kind(own) != '{' || wirejson.Find(own, mcp.MetaServerInfo) != nil {
		return raw
	}
	return wirejson.SetMember(raw, "_meta", wirejson.SetMember(own, mcp.MetaServerInfo, []byte(w.ServerInfo)))
}

// BuiltInToolReply returns the result of a built-in tool, an object: the same JSON as structured content and as text.
func (w *ReplyBuilder) BuiltInToolReply(modern bool, answer json.RawMessage) Reply {
	text := make([]byte, 0, len(answer)+len(answer)/4+256)
	text = append(append(text, w.ResultPrefix(modern)...), `"content":[{"type":"text","text":`...)
	text = append(wirejson.AppendString(text, answer), `}],"structuredContent":{`...)
	return Reply{Front: text, Result: answer, Back: closeBrace}
}

// ToolErrorReply returns a problem as the result of a tool, for the model to read.
func (w *ReplyBuilder) ToolErrorReply(modern bool, err error) Reply {
	p := problem.From(err)
	if p.Code == problem.Internal && !errors.Is(err, context.Canceled) {
		w.logger.Error("a tool failed", "error", p.Cause)
	}
	detail, err := json.Marshal(p)
	if err != nil {
		detail, _ = json.Marshal(problem.New(p.Code, p.Message, p.Hint))
	}
	out := append(make([]byte, 0, 2*len(detail)+192), w.ResultPrefix(modern)...)
	out = wirejson.AppendString(append(out, `"content":[{"type":"text","text":`...), problemText(p))
	out = append(append(out, `}],"structuredContent":{"error":`...), detail...)
	return Reply{Result: append(out, `},"isError":true}`...)}
}

// ProblemReply returns a problem as the reply to a request that could not be forwarded: a tool result for a
// tool call, otherwise a JSON-RPC error.
func (w *ReplyBuilder) ProblemReply(modern bool, method string, err error) Reply {
	p := problem.From(err)
	if method == mcp.CallTool && p.Code != problem.ToolNotFound && p.Code != problem.InvalidName && p.Code != problem.ServerNotFound {
		return w.ToolErrorReply(modern, err)
	}
	status, said := ForwardedHTTPStatus(modern, p)
	switch {
	case said:
	case p.Code == problem.ServerNotFound:
		status = http.StatusNotFound
	case modern && p.Code.JSONRPC() == wirejson.CodeInvalidParams:
		status = http.StatusBadRequest
	default:
		status = http.StatusOK
	}
	return Reply{Error: w.ToRPCError(err), Status: status}
}

// ForwardedHTTPStatus returns the HTTP status with which a server rejected a request, if it concerns the client. 401
// and 403 concern MCPProxy's own credentials. A 404 in a session would end the client's session.
func ForwardedHTTPStatus(modern bool, p *problem.Problem) (status int, ok bool) {
	status, _ = p.Detail("http_status").(int)
	switch {
	case status < 400, status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusNotFound && !modern:
		return 0, false
	}
	return status, true
}

// ToRPCError returns a problem as a JSON-RPC error.
func (w *ReplyBuilder) ToRPCError(err error) *wirejson.RPCError {
	p := problem.From(err)
	if p.Code == problem.Internal && !errors.Is(err, context.Canceled) && !errors.Is(err, ErrEnded) {
		w.logger.Error("a request could not be forwarded", "error", p.Cause)
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

// SubscriptionMeta returns the member _meta that identifies the subscription of a request, without its closing brace,
// as in events of the subscription.
func SubscriptionMeta(listen *Request) string {
	return `"_meta":{"` + mcp.MetaSubscription + `":` + string(listen.ID)
}

// ParseRequestedEvents returns the member notifications of a subscription, or nil if it is missing. bad is the error if
// it is invalid.
func ParseRequestedEvents(listen *Request) (wanted json.RawMessage, bad *wirejson.RPCError) {
	wanted = wirejson.Find(listen.Params, "notifications")
	if wanted != nil && wirejson.Kind(wanted) != '{' {
		return nil, InvalidParamsError("params.notifications must be an object")
	}
	return wanted, nil
}

// AcknowledgeSubscription sends the subscriber the events that it will get. agreed is a JSON object.
func AcknowledgeSubscription(listen *Request, agreed string) {
	listen.Say(Event{Method: mcp.Acknowledged, Params: []byte(`{` + SubscriptionMeta(listen) + `},"notifications":` + agreed + `}`)})
}

// debounceTime is the time for which changes are collected before they are announced, because a server that connects or
// disconnects causes many changes.
const debounceTime = 100 * time.Millisecond

// WaitDebounced waits for a change, then for debounceTime. It returns the error of ctx.
func WaitDebounced(ctx context.Context, changed <-chan struct{}) error {
	select {
	case <-changed:
	case <-ctx.Done():
		return ctx.Err()
	}
	settle := time.NewTimer(debounceTime)
	defer settle.Stop()
	select {
	case <-settle.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// SubscriptionEndReply returns the result of a subscription that has ended.
func (w *ReplyBuilder) SubscriptionEndReply(listen *Request) Reply {
	return Reply{Result: []byte(`{"resultType":"complete",` + SubscriptionMeta(listen) + `,` + w.MetaMember + `}}`)}
}

// NegotiateVersion returns the protocol version for a session with MCPProxy itself, from the params of
// initialize.
func NegotiateVersion(initialize json.RawMessage) string {
	asked, _ := wirejson.String(wirejson.Find(initialize, "protocolVersion"))
	if !mcp.IsLegacyVersion(asked) {
		return mcp.Legacy
	}
	return asked
}

// InvalidParamsError returns the error of a request whose params cannot be parsed.
func InvalidParamsError(what string) *wirejson.RPCError {
	return InvalidParamsErrorWithMessage("Invalid params: " + what)
}

// InvalidParamsErrorWithMessage returns an invalid-params error with this message.
func InvalidParamsErrorWithMessage(message string) *wirejson.RPCError {
	return &wirejson.RPCError{Code: wirejson.CodeInvalidParams, Message: message}
}

// MethodNotFoundReply returns the reply to an unknown method.
func MethodNotFoundReply(method string) Reply {
	return Reply{Error: &wirejson.RPCError{Code: wirejson.CodeMethodNotFound, Message: "Method not found: " + wirejson.ClipText(method, MaxIdentity)}}
}

// QuoteClipped quotes a client's text, up to a maximum length.
func QuoteClipped(s string) string { return "'" + problem.ClipForDisplay(s, 100) + "'" }
