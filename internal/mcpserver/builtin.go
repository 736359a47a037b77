package mcpserver

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/config"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
)

// BuiltinToolBackend has the operations behind the built-in tools.
type BuiltinToolBackend interface {
	Call(ctx context.Context, r gate.LaneCall) (gate.CallResult, error)
	RetrieveTools(ctx context.Context, r ops.RetrieveRequest) (json.RawMessage, error)
	ReadResult(ctx context.Context, r ops.ReadResultRequest) (json.RawMessage, error)
	Servers(ctx context.Context, c ops.Caller, in ops.Nothing) (ops.ServerViews, error)
	Server(ctx context.Context, c ops.Caller, in ops.ServerRef) (ops.ServerView, error)
	RestartServer(ctx context.Context, c ops.Caller, in ops.ServerRef) (ops.ServerView, error)
	AddServer(ctx context.Context, c ops.Caller, in ops.AddServerRequest) (ops.ServerView, error)
	RecordRefusal(ctx context.Context, r gate.SurfaceRefusal) string
	UsableServers(c *auth.Caller) (all []ops.UsableServer, changed <-chan struct{})
	CallsPerServer(c *auth.Caller) map[string]int64
	PauseNotice() string
}

// AppSurface is what /mcp offers to clients that show user interfaces of servers (MCP Apps).
type AppSurface interface {
	// AnswerAppRequest lists or reads user interfaces.
	AnswerAppRequest(ctx context.Context, r *session.Request, modern bool) session.Reply
	// AppTool returns the tool that a user interface calls by its server's own name, or nil.
	AppTool(r *session.Request, name string) *catalog.Tool
	// NameApps and AddApp return a result, with the addresses by which the client can read its user interfaces. AddApp
	// also names the one of the tool.
	NameApps(r *session.Request, t *catalog.Tool, result json.RawMessage) json.RawMessage
	AddApp(r *session.Request, t *catalog.Tool, result json.RawMessage) json.RawMessage
}

// BuiltinTools is the session.Endpoint of the built-in tools.
type BuiltinTools struct {
	AppSurface AppSurface // nil: no user interfaces

	gateway BuiltinToolBackend
	config  func() *config.Config
	reply   *session.ReplyBuilder
	texts   replyTexts
}

// NewBuiltinTools returns a BuiltinTools.
func NewBuiltinTools(g BuiltinToolBackend, config func() *config.Config, w *session.ReplyBuilder) *BuiltinTools {
	return &BuiltinTools{gateway: g, config: config, reply: w, texts: newReplyTexts(w)}
}

// EventDeliveryOf implements session.DeliveryChooser.
func (s *BuiltinTools) EventDeliveryOf(method string) session.EventDelivery {
	switch method {
	case mcp.CallTool:
		return session.Dropping
	case mcp.Listen:
		return session.Streaming
	}
	return session.Direct
}

// Do answers a modern request.
func (s *BuiltinTools) Do(ctx context.Context, r *session.Request) (session.Reply, error) {
	switch r.Method {
	case mcp.Discover:
		now, _ := s.currentView(r.Caller)
		return session.Reply{Result: slices.Concat(s.texts.discover[s.showsApps(r)], now.instructionsJSON(s.gateway.CallsPerServer(r.Caller)), []byte(noCaching+"}"))}, nil
	case mcp.Listen:
		return s.serveSubscription(ctx, r), nil
	}
	return s.answerMethod(ctx, r, nil), nil
}

// answerMethod answers the requests of both protocols; l is nil in the modern one.
func (s *BuiltinTools) answerMethod(ctx context.Context, r *session.Request, l *legacySession) session.Reply {
	switch r.Method {
	case mcp.CallTool:
		q := builtinToolCall{BuiltinTools: s, Request: r, modern: l == nil, cfg: s.config()}
		if l != nil {
			q.told = l.told.markSeen
		}
		return q.runTool(ctx)
	case mcp.ListTools:
		return s.listTools(r, l == nil)
	case mcp.ReadResource, mcp.ListResources, mcp.ListTemplates:
		if s.showsApps(r) {
			return s.AppSurface.AnswerAppRequest(ctx, r, l == nil)
		}
	}
	return session.MethodNotFoundReply(r.Method)
}

// showsApps reports whether the client of a request gets user interfaces.
func (s *BuiltinTools) showsApps(r *session.Request) bool { return r.Apps && s.AppSurface != nil }

// listTools answers tools/list. There is one page, so every cursor is invalid except the empty one, which
// some clients send first.
func (s *BuiltinTools) listTools(r *session.Request, modern bool) session.Reply {
	if c := wirejson.Find(r.Params, "cursor"); c != nil && wirejson.Kind(c) != 'n' && string(c) != `""` {
		return session.Reply{Error: session.InvalidParamsError("the cursor is not one of ours: there is one page, ask without a cursor")}
	}
	return session.Reply{Result: s.texts.toolList(s.newToolListKey(r.Caller, modern))}
}

// ToolListSize returns the size of the tool list in bytes.
func (s *BuiltinTools) ToolListSize() int { return len(s.texts.toolList(s.newToolListKey(nil, false))) }

// currentView returns what a caller sees, and a channel that is closed when that may have changed.
func (s *BuiltinTools) currentView(c *auth.Caller) (clientView, <-chan struct{}) {
	servers, changed := s.gateway.UsableServers(c)
	return clientView{s.newToolListKey(c, false), servers}, changed
}

// newToolListKey returns the current inputs of the tool list; a nil caller has no restrictions.
func (s *BuiltinTools) newToolListKey(c *auth.Caller, modern bool) toolListKey {
	cfg := s.config()
	l := toolListKey{modern: modern, intent: cfg.Intent.RequireIntent, management: cfg.MCPManagement, most: policy.Destructive}
	if !listsUpstreamServers(cfg) {
		l.management = config.ManageOff
	}
	if c != nil {
		l.most = policy.WorstOperationOfScope(c.Scope())
	}
	if c != nil && l.management == config.ManagePropose && !ops.MayProposeServers(c) {
		l.management = config.ManageRead
	}
	return l
}

// notifyViewChanges tells the client about changes of the tool list until ctx ends.
func (s *BuiltinTools) notifyViewChanges(ctx context.Context, c *auth.Caller, k *lastView, say func()) {
	for {
		now, changed := s.currentView(c)
		if k.replaceView(now) {
			say()
		}
		if session.WaitDebounced(ctx, changed) != nil {
			return
		}
	}
}

// serveSubscription serves a subscription: it notifies when the tools, or the servers behind them, have changed.
func (s *BuiltinTools) serveSubscription(ctx context.Context, r *session.Request) session.Reply {
	wanted, bad := session.ParseRequestedEvents(r)
	if bad != nil {
		return session.Reply{Error: bad}
	}
	if tools, _ := wirejson.Bool(wirejson.Find(wanted, "toolsListChanged")); !tools {
		session.AcknowledgeSubscription(r, "{}")
		<-ctx.Done()
		return s.reply.SubscriptionEndReply(r)
	}
	var k lastView
	now, _ := s.currentView(r.Caller)
	k.replaceView(now) // before the client can list
	session.AcknowledgeSubscription(r, `{"toolsListChanged":true}`)
	s.notifyViewChanges(ctx, r.Caller, &k, func() {
		r.Say(session.Event{Method: mcp.ToolsChanged, Params: json.RawMessage("{" + session.SubscriptionMeta(r) + "}}")})
	})
	return s.reply.SubscriptionEndReply(r)
}

// OpenSession opens a session.
func (s *BuiltinTools) OpenSession(_ context.Context, initialize *session.Request) (session.Session, session.Reply, error) {
	l := &legacySession{BuiltinTools: s, caller: *initialize.Caller}
	now, _ := s.currentView(&l.caller)
	l.known.replaceView(now)
	return l, session.Reply{Result: slices.Concat([]byte(`{"protocolVersion":"`+session.NegotiateVersion(initialize.Params)), s.texts.initialize[s.showsApps(initialize)], now.instructionsJSON(s.gateway.CallsPerServer(&l.caller)), []byte("}"))}, nil
}

// legacySession is a legacy session with the built-in tools.
type legacySession struct {
	*BuiltinTools
	caller auth.Caller
	known  lastView
	told   textsSentOnce
}

// textsSentOnce are texts that a session gets only once.
type textsSentOnce struct {
	mu    sync.Mutex // guards texts
	texts map[string]bool
}

// markSeen records a text and reports whether it was sent before. There are few texts.
func (t *textsSentOnce) markSeen(text string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.texts[text]
	if t.texts == nil {
		t.texts = make(map[string]bool)
	}
	t.texts[text] = true
	return before
}

func (l *legacySession) Do(ctx context.Context, r *session.Request) (session.Reply, error) {
	if r.Method == mcp.Ping {
		return session.Reply{Result: []byte("{}")}, nil
	}
	return l.answerMethod(ctx, r, l), nil
}

// NotifyServer and Respond ignore their message: no notification matters here, and no question is asked.
func (*legacySession) NotifyServer(context.Context, string, json.RawMessage) error { return nil }
func (*legacySession) AnswerServerQuestion(context.Context, json.RawMessage, session.Reply) error {
	return nil
}
func (*legacySession) Close()                {}
func (*legacySession) Done() <-chan struct{} { return nil }

// Listen notifies the client when the tools, or the servers behind them, have changed. Of several
// listeners one gets the event.
func (l *legacySession) Listen(ctx context.Context, say func(session.Event), opened func()) error {
	opened()
	l.notifyViewChanges(ctx, &l.caller, &l.known, func() { say(session.Event{Method: mcp.ToolsChanged}) })
	return ctx.Err()
}

// builtinToolCall is a parsed tools/call.
type builtinToolCall struct {
	*BuiltinTools
	*session.Request
	modern bool
	cfg    *config.Config
	told   func(text string) bool // nil if requests cannot be assigned to a client

	name, args json.RawMessage // members of params; nil if missing
}

// parseParams parses the params.
func (q *builtinToolCall) parseParams() {
	_ = wirejson.EachMember(q.Params, func(name, value []byte) error {
		switch string(name) {
		case "name":
			q.name = value
		case "arguments":
			q.args = value
		}
		return nil
	})
}

// RecordRefusedCall records a call that was refused before it reached the endpoint.
func (s *BuiltinTools) RecordRefusedCall(ctx context.Context, r *session.Request, p *problem.Problem) {
	q := builtinToolCall{BuiltinTools: s, Request: r}
	q.parseParams()
	q.recordRefusal(ctx, p)
}

// invalidCallReply refuses a call that cannot be parsed.
func (q *builtinToolCall) invalidCallReply(ctx context.Context, what string) session.Reply {
	e := session.InvalidParamsError(what)
	q.recordRefusal(ctx, problem.New(problem.InvalidParameter, e.Message, ""))
	return session.Reply{Error: e}
}

// refusalReply returns the error result of a built-in tool. Refusals, in contrast to failures, are recorded.
func (q *builtinToolCall) refusalReply(ctx context.Context, err error) session.Reply {
	switch p := problem.From(err); p.Code {
	case problem.Internal, problem.Interrupted, problem.Timeout, problem.AuditUnavailable:
	default:
		q.recordRefusal(ctx, p)
	}
	return q.reply.ToolErrorReply(q.modern, err)
}

// recordRefusal records a refusal with the parameters of the call.
func (q *builtinToolCall) recordRefusal(ctx context.Context, p *problem.Problem) {
	r := gate.SurfaceRefusal{Caller: *q.Caller, RequestBytes: q.Size, Problem: p}
	r.Tool, _ = wirejson.String(q.name)
	switch r.Tool {
	case toolReadResult: // the handle is a secret
	case toolUpstreamServers: // its environment may contain secrets
		r.Server, _ = wirejson.String(wirejson.Find(q.args, "name"))
		r.Action, _ = wirejson.String(wirejson.Find(q.args, "operation"))
	default:
		r.Arguments = q.args
	}
	q.gateway.RecordRefusal(ctx, r)
}
