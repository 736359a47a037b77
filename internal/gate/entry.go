package gate

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

// Evaluation is what would become of a call.
type Evaluation struct {
	Facts    activity.Decision // as its record would have them
	Warnings []string
	Asks     policy.AskedBy   // the rule by which a person would be asked first
	Problem  *problem.Problem // why it would be refused; nil when it would not
}

// Evaluate decides about a call as Call does, and goes no further: nothing is called, and
// nothing is on record. Arguments that are not given are not checked, nor judged.
func (g *Gate) Evaluate(r CallRequest) Evaluation {
	c, snapshot := g.inLane(r)
	c.Validates = r.Args != nil || r.ArgsJSON != nil
	c.supposed = !c.Validates
	p := g.decide(c, snapshot)
	check, asks := policy.NoCheck, policy.AskedBy{}
	if p != nil {
		check = c.decision.Check
	} else {
		asks, _ = c.caught(c.cfg, c.tool, c.arguments)
	}
	g.recordDecision(c, check)
	if asks.Asked() {
		c.recordedDecision.Outcome, c.recordedDecision.Check = activity.Asked, policy.CheckAsk.String()
	}
	return Evaluation{c.recordedDecision, c.decision.Warnings, asks, p}
}

// Call decides, records, asks the server and records the outcome. The error
// is a *problem.Problem: a refusal, or a failure with the codes of the
// contract. A tool that reports a failure of its own is no error: IsError.
func (g *Gate) Call(ctx context.Context, r CallRequest) (CallResult, error) {
	c, snapshot := g.inLane(r)
	c.request = session.Request{Method: mcp.CallTool, Call: &c.parts, Caller: &c.caller, Size: r.RequestBytes}
	if notify := r.Notify; notify != nil {
		c.request.Say = func(e session.Event) { notify(e.Method, e.Params) }
	}
	c.target = target{server: c.policyRequest.ID.Server, Doer: g.Servers(c.policyRequest.ID.Server)}
	if r.Client != nil {
		c.request.Asker, c.request.Forms = r.Client.Asker, r.Client.Forms
		c.takeReturned(ctx, r.Client.Params)
	}
	reply, err := g.execute(ctx, c, snapshot)
	if err != nil || c.asksFirst() {
		return CallResult{Result: reply.Result, ActivityID: c.id}, err
	}
	return CallResult{Result: c.result, IsError: c.isError, Warnings: c.decision.Warnings, ActivityID: c.id, Handle: c.handle}, nil
}

// inLane is a call by a calling tool, as far as it is needed to decide about it, and the
// snapshot to decide on.
func (g *Gate) inLane(r CallRequest) (*call, *catalog.Snapshot) {
	c := &call{options: options{Declares: true, Validates: true, Cuts: true},
		gate: g, cfg: g.Config(), started: time.Now(), caller: r.Caller, stateless: r.Caller.SessionID == "", limit: r.Timeout,
		policyRequest: policy.Request{Variant: r.Variant, Declared: r.Declared}, unknown: r.Strays}
	snapshot := g.Catalog.Current()
	if c.name(snapshot, r.Name); c.tool == nil {
		c.name(snapshot, trimmed(r.Name))
	}
	c.parts = session.Call{Tool: c.policyRequest.ID.Tool, Meta: r.Meta}
	c.selection, c.policyRequest.SelectErr = policy.ReadSelection(r.Select)
	c.parts.Arguments, c.policyRequest.ArgsErr = given(r.Args, r.ArgsJSON)
	if r.Hands && c.policyRequest.ArgsErr == nil {
		if c.resultRefs = resultRefsIn(c.parts.Arguments); c.resultRefs != nil {
			c.recorded = replaced(c.parts.Arguments, c.resultRefs, (*resultRef).shown)
		}
	}
	return c, snapshot
}

// name says which tool is called.
func (c *call) name(s *catalog.Snapshot, name string) {
	c.policyRequest.Name = name
	c.policyRequest.ID, c.policyRequest.NameErr = tool.ParseID(name)
	c.tool = s.Tool(c.policyRequest.ID)
}

// trimmed returns the name of a tool without blanks around it and its parts.
func trimmed(name string) string {
	server, own, ok := strings.Cut(name, ":")
	if !ok {
		return strings.TrimSpace(name)
	}
	return strings.TrimSpace(server) + ":" + strings.TrimSpace(own)
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
	return g.pass(ctx, target{server: n.ID.Server, Doer: g.Servers(n.ID.Server)}, &n, r)
}

// pass takes a client's own tools/call through the gate. The lane on record is
// the one that the tool's hints call for.
func (g *Gate) pass(ctx context.Context, w target, n *NamedCall, r *session.Request) (session.Reply, error) {
	c := &call{gate: g, cfg: g.Config(), started: time.Now(), caller: *r.Caller, stateless: r.Caller.SessionID == "", target: w, openSession: n.Open, request: *r,
		policyRequest: policy.Request{OwnNames: true, Variant: policy.CallToolDestructive, Name: n.Name, NameErr: n.Err}}
	c.request.Caller = &c.caller
	c.request.Params = c.takeReturned(ctx, r.Params)
	if n.Err == nil {
		c.policyRequest.Name = n.ID.String()
		c.policyRequest.ID, c.policyRequest.NameErr = tool.ParseID(c.policyRequest.Name)
	}
	given := wirejson.Find(r.Params, "arguments")
	c.parts.Arguments, c.policyRequest.ArgsErr = readArguments("arguments", given)
	snapshot := g.Catalog.Current()
	if c.tool = snapshot.Tool(c.policyRequest.ID); c.tool != nil {
		c.policyRequest.Variant = c.tool.CallWith
		if what := c.mismatch(given); what != "" && c.inScope() {
			g.Refuse(ctx, Refusal{Caller: c.caller, Server: c.policyRequest.ID.Server, Tool: c.policyRequest.ID.Tool, Variant: c.policyRequest.Variant, Arguments: given, RequestBytes: r.Size,
				Problem: problem.New(problem.InvalidRequest, what, "")})
			return session.Reply{Status: http.StatusBadRequest, Error: &wirejson.RPCError{Code: mcp.CodeHeaderMismatch, Message: what}}, nil
		}
	}
	reply, err := g.execute(ctx, c, snapshot)
	switch {
	case reply.Error != nil: // as the server said it
		return reply, nil
	case err != nil:
		return session.Reply{}, err
	}
	return reply, nil
}

// inScope reports whether the caller may know of the tool.
func (c *call) inScope() bool {
	return c.tool.InScope(c.caller.Scope())
}

// mismatch returns what the headers of a request that stands for itself say
// otherwise than its arguments: who routes by headers must not be told anything
// else.
func (c *call) mismatch(given json.RawMessage) string {
	if c.target.asks != nil || c.openSession != nil || c.request.Fields == nil {
		return ""
	}
	if what := mcp.Mismatch(c.tool.Raw, given, c.request.Fields); what != "" {
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
