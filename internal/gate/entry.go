package gate

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

// Request is a call by a calling tool. Args and ArgsJSON are the two forms of the arguments, as JSON
// values; giving both is a problem, giving none means {}.
type Request struct {
	Variant  policy.Variant
	Name     string
	Args     json.RawMessage // nil when not given
	ArgsJSON json.RawMessage
	// Hands says that an argument {"$result": handle, "path": path} stands for a result.
	Hands bool
	// Select is an expression of jq, as a JSON value: what to show of the result. nil when
	// not given.
	Select json.RawMessage
	// Unknown is what else was given that is no parameter of a calling tool: perhaps
	// arguments of the tool in the wrong place.
	Unknown  []UnknownArgument
	Declared policy.Declared
	Caller   auth.Caller // without a SessionID it gets one
	// Meta is the client's _meta to pass on; Say gets the notifications of
	// the call, in order. See session.ToolCall and session.Request.
	Meta         json.RawMessage
	Say          func(session.Event)
	Client       *session.Request // that the client has made, by which it may be asked; nil for who is no client of MCP
	RequestBytes int
	Timeout      time.Duration // 0 = the configured one; a shorter one wins
}

// UnknownArgument is a parameter that no calling tool has.
type UnknownArgument struct {
	Name  string
	Value json.RawMessage
}

// Result is the answer of a tool.
type Result struct {
	// Result is the server's result object: its bytes, unless it had to be
	// cut to result_limit or warnings had to be added to its _meta.
	Result     json.RawMessage
	IsError    bool // the server said isError
	Warnings   []string
	ActivityID string
	Handle     string // for read_result; empty when nothing was cut
}

// Evaluation is what would become of a call.
type Evaluation struct {
	Facts    activity.Decision // as its record would have them
	Warnings []string
	Asks     policy.AskedBy   // the rule by which a person would be asked first
	Problem  *problem.Problem // why it would be refused; nil when it would not
}

// Evaluate decides about a call as Call does, and goes no further: nothing is called, and
// nothing is on record. Arguments that are not given are not checked, nor judged.
func (g *Gate) Evaluate(r Request) Evaluation {
	c, s, now := g.resolve(&r)
	c.Validates = r.Args != nil || r.ArgsJSON != nil
	s.args.unknown = !c.Validates
	v := g.decide(&c, s, now)
	e := Evaluation{Facts: g.decisionOf(&c, &v, v.Check), Warnings: v.Warnings, Problem: v.Problem}
	if v.Problem == nil {
		e.Asks, _ = v.askedBy(&c, v.does)
	}
	if e.Asks.Asked() {
		e.Facts.Outcome, e.Facts.Check = activity.Asked, policy.CheckAsk.String()
	}
	return e
}

// Call decides, records, asks the server and records the outcome. The error
// is a *problem.Problem: a refusal, or a failure with the codes of the
// contract. A tool that reports a failure of its own is no error: IsError.
func (g *Gate) Call(ctx context.Context, r Request) (Result, error) {
	x := &execution{time: stopwatch{started: time.Now()}}
	var s subject
	var now *catalog.Snapshot
	x.call, s, now = g.resolve(&r)
	if x.call.stateless && r.Client != nil {
		_, x.call.returned = g.takeReturned(ctx, r.Client.Params)
	}
	_, result, err := g.execute(ctx, x, s, now, target{server: s.request.ID.Server, Doer: g.Servers(s.request.ID.Server)})
	return result, err
}

// NamedCall is what a client calls that is not with one server: a tool, by its name
// among those of all.
type NamedCall struct {
	Name string  // as the client has it
	ID   tool.ID // that it stands for
	Err  error   // why it stands for none
	// Open opens the client's session with the server, from the server's Surface,
	// within the time of the call; nil: the request stands for itself.
	Open func(ctx context.Context, server string) (session.Session, error)
}

// CallNamed is Do of a server's Surface for a client's tools/call on the surface of
// all servers. r has the server's own name of the tool.
func (g *Gate) CallNamed(ctx context.Context, n NamedCall, r *session.Request) (session.Reply, error) {
	return g.pass(ctx, target{server: n.ID.Server, Doer: g.Servers(n.ID.Server), open: n.Open}, &n, r)
}

// pass runs a client's own tools/call.
func (g *Gate) pass(ctx context.Context, to target, n *NamedCall, r *session.Request) (session.Reply, error) {
	x := &execution{time: stopwatch{started: time.Now()}}
	var s subject
	var now *catalog.Snapshot
	x.call, s, now = g.resolveNamed(ctx, n, r)
	if what := s.mismatch(to, r); what != "" && s.tool.InScope(x.call.caller.Scope()) {
		g.Refuse(ctx, Refusal{Caller: x.call.caller, Server: s.request.ID.Server, Tool: s.request.ID.Tool, Variant: s.request.Variant,
			Arguments: wirejson.Find(r.Params, "arguments"), RequestBytes: r.Size, Problem: problem.New(problem.InvalidRequest, what, "")})
		return session.Reply{Status: http.StatusBadRequest, Error: &wirejson.RPCError{Code: mcp.CodeHeaderMismatch, Message: what}}, nil
	}
	reply, _, err := g.execute(ctx, x, s, now, to)
	switch {
	case reply.Error != nil: // as the server said it
		return reply, nil
	case err != nil:
		return session.Reply{}, err
	}
	return reply, nil
}

// mismatch returns how the headers of a request without a session differ from its arguments: a
// router that reads the headers must not see anything else.
func (s *subject) mismatch(to target, r *session.Request) string {
	if s.tool == nil || to.asks != nil || to.open != nil || r.Headers == nil {
		return ""
	}
	if what := mcp.ParamHeaderMismatch(s.tool.Raw, wirejson.Find(r.Params, "arguments"), r.Headers); what != "" {
		return "Header mismatch: " + what
	}
	return ""
}

// Unnamed refuses a tools/call that names no tool, on record.
func (g *Gate) Unnamed(ctx context.Context, server string, r *session.Request) error {
	p := problem.New(problem.InvalidName, "params.name must be a string: the tool to call", "")
	g.Refused(ctx, server, r, p)
	return p
}
