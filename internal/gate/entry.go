package gate

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"time"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/result"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

// LaneCall is a call by call_tool_read, call_tool_write or call_tool_destructive. Args and ArgsJSON are the two forms
// of the arguments, as JSON values. Setting both is a problem; setting neither means {}.
type LaneCall struct {
	CallTool policy.CallToolVariant
	Name     string
	Args     json.RawMessage // nil if not given
	ArgsJSON json.RawMessage
	// ResultRefs reports whether an argument {"$result": handle, "path": path} is replaced with a stored result.
	ResultRefs bool
	// Select is a jq expression, as a JSON value, that selects from the result; nil if not given.
	Select json.RawMessage
	// Unknown are parameters that no call tool has. They may be misplaced arguments of the tool.
	Unknown  []UnknownArgument
	Declared policy.DeclaredIntent
	Caller   auth.Caller // the gate adds a missing SessionID
	// Meta is the client's _meta for the server. Say receives the notifications of the call, in order. See
	// session.ToolCall and session.Request.
	Meta         json.RawMessage
	Say          func(session.Event)
	Client       *session.Request // the client's request, used to ask the client for approval; nil if the caller is no MCP client
	Whole        bool             // no selection and no limit applies to the result, because no model reads it
	RequestBytes int
	Timeout      time.Duration // 0 = the configured timeout; otherwise the shorter of the two applies
}

// UnknownArgument is a parameter that no call tool has.
type UnknownArgument struct {
	Name  string
	Value json.RawMessage
}

// CallResult is the result of a call.
type CallResult struct {
	// Result is the server's result object, byte for byte, unless a selection, result_limit or warnings in its _meta
	// changed it.
	Result     json.RawMessage
	IsError    bool // the server reports a failure of the tool
	Warnings   []string
	ActivityID string
	Handle     string // for read_result; empty if the result is complete
	Tool       *catalog.Tool
}

// DryRunResult is the decision that a call would get.
type DryRunResult struct {
	Facts    activity.Decision // as in the record of the call
	Warnings []string
	Asks     policy.ApprovalRule // the rule that would require an approval
	Problem  *problem.Problem    // why the call would be refused; nil if it would not be refused
}

// DryRun decides about a call as Call does, but sends and records nothing. Missing arguments are
// neither validated nor classified.
func (g *Gate) DryRun(r LaneCall) DryRunResult {
	c, s, now := g.resolveLaneCall(&r)
	c.ValidatesArguments = r.Args != nil || r.ArgsJSON != nil
	s.args.unknown = !c.ValidatesArguments
	v := g.decide(&c, s, now)
	if p := g.Pause.Problem(); p != nil {
		v = v.withRefusal(policy.CheckPause, p)
	}
	e := DryRunResult{Facts: g.toRecordDecision(&c, &v, v.Check), Warnings: v.Warnings, Problem: v.Problem}
	if v.Problem == nil {
		e.Asks, _ = v.approvalRule(&c, v.argumentEffect)
	}
	if e.Asks.IsSet() {
		e.Facts.Outcome, e.Facts.Check = activity.Asked, policy.CheckAsk.String()
	}
	return e
}

// Call decides about a call, records it, sends it and records the outcome. The error is a *problem.Problem about a
// refusal or a failure. A failure of the tool itself is not an error; see CallResult.IsError.
func (g *Gate) Call(ctx context.Context, r LaneCall) (CallResult, error) {
	x := &execution{time: stopwatch{started: time.Now()}}
	var s resolvedCall
	var now *catalog.Snapshot
	x.call, s, now = g.resolveLaneCall(&r)
	if x.call.stateless && r.Client != nil {
		_, x.call.returned = g.extractReturnedAnswer(ctx, r.Client.Params)
	}
	_, result, err := g.execute(ctx, x, s, now, requestTarget{server: s.request.ID.Server, Doer: g.UpstreamSurface(s.request.ID.Server)})
	result.Tool = s.tool
	return result, err
}

// ToolCallTarget is the tool that a client's own tools/call names.
type ToolCallTarget struct {
	Lane policy.CallToolVariant // lane of the endpoint; CallToolNone if the tool's hints decide
	Name string                 // name that the client used; "" if it used the server's own name
	ID   tool.ID                // ID of the named tool
	// Alias is server:alias if the client used the user's name for the tool; "" otherwise.
	Alias string
	Err   error // why the request names no tool
	// Open opens the client's session with the server, within the time limit of the call. It is nil if the request
	// needs no session.
	Open func(ctx context.Context, server string) (session.Session, error)
}

// CallFromAggregate runs a client's tools/call on /mcp/all. r contains the server's own name of the tool. A result
// that strict clients would reject is converted to a form that they accept.
func (g *Gate) CallFromAggregate(ctx context.Context, n ToolCallTarget, r *session.Request) (session.Reply, error) {
	reply, err := g.callFromClient(ctx, requestTarget{server: n.ID.Server, Doer: g.UpstreamSurface(n.ID.Server), open: n.Open}, &n, r)
	if reply.Result != nil && reply.Front == nil {
		reply.Result = result.StrictForm(reply.Result, n.Open == nil)
		if t := g.Catalog.Current().Tool(n.ID); t != nil {
			reply.Result = dropUnfitErrorContent(t, reply.Result)
		}
	}
	return reply, err
}

// dropUnfitErrorContent removes structuredContent that does not fit the output schema from the result of a failed
// call. Clients validate it even for failures, and would hide the failure.
func dropUnfitErrorContent(t *catalog.Tool, raw json.RawMessage) json.RawMessage {
	if t.OutputSchema == nil || !bytes.Contains(raw, []byte(`"isError"`)) {
		return raw
	}
	failed, _ := wirejson.Bool(wirejson.Find(raw, "isError"))
	structured := wirejson.Find(raw, "structuredContent")
	if !failed || structured == nil || t.FitsOutputSchema(structured) {
		return raw
	}
	return result.WithoutStructuredContent(raw)
}

// callFromClient runs a client's own tools/call.
func (g *Gate) callFromClient(ctx context.Context, to requestTarget, n *ToolCallTarget, r *session.Request) (session.Reply, error) {
	x := &execution{time: stopwatch{started: time.Now()}}
	var s resolvedCall
	var now *catalog.Snapshot
	x.call, s, now = g.resolveClientCall(ctx, n, r)
	if what := s.headerMismatchText(to, r); what != "" && s.tool.InScope(x.call.caller.Scope()) {
		g.RecordRefusal(ctx, SurfaceRefusal{Caller: x.call.caller, Server: s.request.ID.Server, Tool: s.request.ID.Tool, CallTool: s.request.CallTool,
			Arguments: wirejson.Find(r.Params, "arguments"), RequestBytes: r.Size, Problem: problem.New(problem.InvalidRequest, what, "")})
		return session.Reply{Status: http.StatusBadRequest, Error: &wirejson.RPCError{Code: mcp.CodeHeaderMismatch, Message: what}}, nil
	}
	reply, result, err := g.execute(ctx, x, s, now, to)
	switch {
	case reply.Error != nil: // unchanged
		return reply, nil
	case err != nil:
		return session.Reply{}, err
	case len(result.Warnings) > 0:
		reply.Result = result.Result
	}
	return reply, nil
}

// headerMismatchText describes how the headers of a request without a session differ from its arguments; "" if they
// match. A router that reads the headers must see the same call.
func (s *resolvedCall) headerMismatchText(to requestTarget, r *session.Request) string {
	if s.tool == nil || to.asks != nil || to.open != nil || r.Headers == nil {
		return ""
	}
	if what := mcp.ParamHeaderMismatch(s.tool.Raw, wirejson.Find(r.Params, "arguments"), r.Headers); what != "" {
		return "Header mismatch: " + what
	}
	return ""
}

// RefuseUnnamedCall records the refusal of a tools/call without a name, and returns its problem.
func (g *Gate) RefuseUnnamedCall(ctx context.Context, server string, r *session.Request) error {
	p := problem.New(problem.InvalidName, "params.name must be a string: the tool to call", "")
	g.RecordRefusedToolCall(ctx, server, r, p)
	return p
}
