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

// Judge decides about a call as Call does, and goes no further: nothing is called, and
// nothing is on record. Arguments that are not given are not checked, nor judged.
func (d *Gate) Judge(r CallRequest) Evaluation {
	c, snapshot := d.inLane(r)
	c.Validates = r.Args != nil || r.ArgsJSON != nil
	c.supposed = !c.Validates
	p := d.decide(c, snapshot)
	check, asks := policy.NoCheck, policy.AskedBy{}
	if p != nil {
		check = c.decision.Check
	} else {
		asks, _ = c.caught(c.cfg, c.tool, c.arguments)
	}
	d.judge(c, check)
	if asks.Asked() {
		c.judged.Outcome, c.judged.Check = activity.Asked, policy.CheckAsk.String()
	}
	return Evaluation{c.judged, c.decision.Warnings, asks, p}
}

// Call decides, records, asks the server and records the outcome. The error
// is a *problem.Problem: a refusal, or a failure with the codes of the
// contract. A tool that reports a failure of its own is no error: IsError.
func (d *Gate) Call(ctx context.Context, r CallRequest) (CallResult, error) {
	c, snapshot := d.inLane(r)
	c.request = session.Request{Method: mcp.CallTool, Call: &c.parts, Caller: &c.caller, Size: r.RequestBytes}
	if notify := r.Notify; notify != nil {
		c.request.Say = func(e session.Event) { notify(e.Method, e.Params) }
	}
	c.way = way{server: c.asked.ID.Server, Doer: d.Servers(c.asked.ID.Server)}
	if r.Client != nil {
		c.request.Asker, c.request.Forms = r.Client.Asker, r.Client.Forms
		c.takeReturned(ctx, r.Client.Params)
	}
	reply, err := d.through(ctx, c, snapshot)
	if err != nil || c.asksFirst() {
		return CallResult{Result: reply.Result, ActivityID: c.id}, err
	}
	return CallResult{Result: c.result, IsError: c.isError, Warnings: c.decision.Warnings, ActivityID: c.id, Handle: c.handle}, nil
}

// inLane is a call by a calling tool, as far as it is needed to decide about it, and the
// snapshot to decide on.
func (d *Gate) inLane(r CallRequest) (*call, *catalog.Snapshot) {
	c := &call{Options: Options{Declares: true, Validates: true, Cuts: true},
		door: d, cfg: d.Config(), started: time.Now(), caller: r.Caller, stateless: r.Caller.SessionID == "", limit: r.Timeout,
		asked: policy.Request{Variant: r.Variant, Declared: r.Declared}, strays: r.Strays}
	snapshot := d.Catalog.Current()
	if c.name(snapshot, r.Name); c.tool == nil {
		c.name(snapshot, trimmed(r.Name))
	}
	c.parts = session.Call{Tool: c.asked.ID.Tool, Meta: r.Meta}
	c.selection, c.asked.SelectErr = policy.ReadSelection(r.Select)
	c.parts.Arguments, c.asked.ArgsErr = given(r.Args, r.ArgsJSON)
	if r.Hands && c.asked.ArgsErr == nil {
		if c.handed = handedIn(c.parts.Arguments); c.handed != nil {
			c.recorded = replaced(c.parts.Arguments, c.handed, (*handed).shown)
		}
	}
	return c, snapshot
}

// name says which tool is called.
func (c *call) name(s *catalog.Snapshot, name string) {
	c.asked.Name = name
	c.asked.ID, c.asked.NameErr = tool.ParseID(name)
	c.tool = s.Tool(c.asked.ID)
}

// trimmed returns the name of a tool without blanks around it and its parts.
func trimmed(name string) string {
	server, own, ok := strings.Cut(name, ":")
	if !ok {
		return strings.TrimSpace(name)
	}
	return strings.TrimSpace(server) + ":" + strings.TrimSpace(own)
}

// Named is what a client calls that is not with one server: a tool, by its name
// among those of all.
type Named struct {
	Name string  // as the client has it
	ID   tool.ID // that it stands for
	Err  error   // why it stands for none
	// Open opens the client's session with the server, from the server's Surface,
	// within the time of the call; nil: the request stands for itself.
	Open func(ctx context.Context, server string) (session.Session, error)
}

// CallNamed is Do of a server's Surface for a client's tools/call on the surface of
// all servers. r has the server's own name of the tool.
func (d *Gate) CallNamed(ctx context.Context, n Named, r *session.Request) (session.Reply, error) {
	return d.pass(ctx, way{server: n.ID.Server, Doer: d.Servers(n.ID.Server)}, &n, r)
}

// pass takes a client's own tools/call through the door. The lane on record is
// the one that the tool's hints call for.
func (d *Gate) pass(ctx context.Context, w way, n *Named, r *session.Request) (session.Reply, error) {
	c := &call{door: d, cfg: d.Config(), started: time.Now(), caller: *r.Caller, stateless: r.Caller.SessionID == "", way: w, open: n.Open, request: *r,
		asked: policy.Request{OwnNames: true, Variant: policy.CallToolDestructive, Name: n.Name, NameErr: n.Err}}
	c.request.Caller = &c.caller
	c.request.Params = c.takeReturned(ctx, r.Params)
	if n.Err == nil {
		c.asked.Name = n.ID.String()
		c.asked.ID, c.asked.NameErr = tool.ParseID(c.asked.Name)
	}
	given := wirejson.Find(r.Params, "arguments")
	c.parts.Arguments, c.asked.ArgsErr = readArguments("arguments", given)
	snapshot := d.Catalog.Current()
	if c.tool = snapshot.Tool(c.asked.ID); c.tool != nil {
		c.asked.Variant = c.tool.CallWith
		if what := c.mismatch(given); what != "" && c.inScope() {
			d.Refuse(ctx, Refusal{Caller: c.caller, Server: c.asked.ID.Server, Tool: c.asked.ID.Tool, Variant: c.asked.Variant, Arguments: given, RequestBytes: r.Size,
				Problem: problem.New(problem.InvalidRequest, what, "")})
			return session.Reply{Status: http.StatusBadRequest, Error: &wirejson.RPCError{Code: mcp.CodeHeaderMismatch, Message: what}}, nil
		}
	}
	reply, err := d.through(ctx, c, snapshot)
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
	return c.tool.In(c.caller.Scope())
}

// mismatch returns what the headers of a request that stands for itself say
// otherwise than its arguments: who routes by headers must not be told anything
// else.
func (c *call) mismatch(given json.RawMessage) string {
	if c.way.asks != nil || c.open != nil || c.request.Fields == nil {
		return ""
	}
	if what := mcp.Mismatch(c.tool.Raw, given, c.request.Fields); what != "" {
		return "Header mismatch: " + what
	}
	return ""
}

// Unnamed refuses a tools/call that names no tool, on record.
func (d *Gate) Unnamed(ctx context.Context, server string, r *session.Request) error {
	p := problem.New(problem.InvalidName, "params.name must be a string: the tool to call", "")
	d.Refused(ctx, server, r, p)
	return p
}
