package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"mcpproxy/internal/activity"
	"mcpproxy/internal/auth"
	"mcpproxy/internal/catalog"
	"mcpproxy/internal/jsonrpc"
	"mcpproxy/internal/policy"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/strictjson"
	"mcpproxy/internal/tool"
	"mcpproxy/internal/upstream"
)

// Relays is what the gateway needs of upstream.Set to pass requests on.
type Relays interface {
	Converse(ctx context.Context, server string, initialize upstream.Request) (*upstream.Conversation, upstream.Answer, error)
	Relay(ctx context.Context, server string, c *upstream.Conversation, r upstream.Request) (upstream.Answer, error)
	Refresh(ctx context.Context, server string, since time.Time)
	Learn(server string, definitions []json.RawMessage) (news bool)
	Offered(ctx context.Context, server, method, list string) ([]json.RawMessage, error)
}

// RelayRequest is a client's request to one server, to be passed on as it is.
type RelayRequest struct {
	Server string
	// Conversation is the client's own; nil for requests that stand for themselves.
	Conversation *upstream.Conversation
	Request      upstream.Request
	Caller       Caller
	RequestBytes int
	Endless      bool // it waits for what happens: it has no time limit and takes no place
}

const methodCallTool, methodListTools = "tools/call", "tools/list"

// Converse opens a conversation of a client with a server. When the server
// refuses to, the conversation is nil and the answer says why.
func (g *Gateway) Converse(ctx context.Context, r RelayRequest) (*upstream.Conversation, upstream.Answer, error) {
	if p := g.reachable(r.Server, r.Caller); p != nil {
		return nil, upstream.Answer{}, p
	}
	return g.Relays.Converse(ctx, r.Server, r.Request)
}

// Relay passes a request on and gives the server's answer as its bytes. A call
// of a tool goes through the door like any other one, but for the arguments'
// schema and the size of the result; tools that cannot be called are left out
// of the list. The error is a *problem.Problem, or upstream.ErrOver.
func (g *Gateway) Relay(ctx context.Context, r RelayRequest) (upstream.Answer, error) {
	if p := g.reachable(r.Server, r.Caller); p != nil {
		return upstream.Answer{}, p
	}
	if refused := g.guardTasks(&r); refused != nil {
		return upstream.Answer{Error: refused}, nil
	}
	switch {
	case r.Request.Method == methodCallTool:
		return g.passCall(ctx, &r)
	case r.Endless:
		return g.Relays.Relay(ctx, r.Server, r.Conversation, r.Request)
	}
	limited, clock, end := upstream.StartClock(ctx, timeout(g.Config(), r.Server, 0))
	defer end()
	release, err := g.admission.Load().enter(limited, r.Server)
	if err != nil {
		if err = late(limited, err); errors.Is(err, context.DeadlineExceeded) {
			err = problem.Newf(problem.Timeout, "Server '%s' was too busy for '%s' all the time that it has", r.Server, clip(r.Request.Method)).
				WithHint("It was not sent: try again in a moment.").With("server", r.Server)
		}
		return upstream.Answer{}, err
	}
	defer release()
	defer r.Conversation.Time(clock)()
	asked := time.Now()
	a, err := g.Relays.Relay(limited, r.Server, r.Conversation, r.Request)
	if err == nil && a.Error == nil && r.Request.Method == methodListTools {
		if !oneList(a.Result) {
			return upstream.Answer{}, problem.Newf(problem.UpstreamError, "Server '%s' lists its tools in a way that can be read in two.", r.Server).
				WithHint("The server breaks the protocol; see its log with `mcpproxy upstream logs " + r.Server + "`.")
		}
		a.Result = g.visible(limited, r.Server, a.Result, asked)
	}
	if err == nil && r.Request.Method == methodTaskList {
		a.Result = g.listedTasks(&r, a.Result)
	}
	return a, err
}

// reachable says why a server cannot be spoken to, nil when it can.
func (g *Gateway) reachable(server string, c Caller) *problem.Problem {
	snapshot := g.Catalog.Current()
	s := snapshot.Server(server)
	switch {
	case c.Actor.Kind == auth.Nobody:
		return problem.Newf(problem.OutOfScope, "Server '%s' is outside what this client may use", clip(server))
	case s == nil:
		return serverNotFound(snapshot, server)
	case !s.Enabled:
		return problem.Newf(problem.ServerUnavailable, "Server '%s' is disabled", server).
			WithHint("A person must enable the server first.").With("server", server)
	case s.Quarantined:
		return problem.Newf(problem.ServerUnavailable, "Server '%s' is quarantined", server).
			WithHint("A person must review and approve the server.").With("server", server)
	}
	return nil
}

// passCall is Call for a client's own tools/call. The lane on record is the
// one that the tool's hints call for.
func (g *Gateway) passCall(ctx context.Context, r *RelayRequest) (upstream.Answer, error) {
	name, isText := strictjson.String(strictjson.Find(r.Request.Params, "name"))
	if !isText {
		return upstream.Answer{}, problem.New(problem.InvalidName, "params.name must be a string: the tool to call", "")
	}
	c := g.passing(r, tool.ID{Server: r.Server, Tool: name})
	c.passed.Conversation = r.Conversation
	return g.pass(ctx, c, r.Conversation == nil)
}

// passing is a client's own call of a tool, on its way.
func (g *Gateway) passing(r *RelayRequest, id tool.ID) *call {
	c := &call{cfg: g.Config(), started: time.Now(), req: &CallRequest{
		Variant: policy.CallToolDestructive, Name: id.String(), Caller: r.Caller, RequestBytes: r.RequestBytes,
		Args: strictjson.Find(r.Request.Params, "arguments"),
	}, passed: &upstream.Passed{Request: r.Request}, id: id}
	if t := g.Catalog.Current().Tool(id); t != nil {
		c.req.Variant = t.CallWith
	}
	return c
}

// pass takes it through the door. Where a request stands for itself, its
// headers are to say what its arguments say.
func (g *Gateway) pass(ctx context.Context, c *call, standsAlone bool) (upstream.Answer, error) {
	if t := g.Catalog.Current().Tool(c.id); t != nil && standsAlone {
		// Who routes by headers must not be told anything else.
		if what := upstream.Mismatch(t.Raw, c.req.Args, c.passed.Fields); what != "" {
			return upstream.Answer{Status: http.StatusBadRequest, Error: &jsonrpc.Error{
				Code: jsonrpc.CodeHeaderMismatch, Message: "Header mismatch: " + what}}, nil
		}
	}
	result, err := g.through(ctx, c)
	if c.failure != nil {
		return upstream.Answer{Error: c.failure, Status: c.status}, nil
	}
	return upstream.Answer{Result: result.Result, Status: c.status}, err
}

// through takes a call through the door.
func (g *Gateway) through(ctx context.Context, c *call) (CallResult, error) {
	g.converse(&c.req.Caller)
	p := g.decide(c)
	if c.passed == nil {
		c.search = g.searches.found(c.req.Caller.SessionID, c.id)
	}
	if p != nil {
		return CallResult{ActivityID: g.refuse(c, p)}, p
	}
	c.describe(activity.ToolCall)
	if err := g.Log.Begin(&c.record); err != nil {
		return CallResult{}, err
	}
	return g.carryOut(ctx, c)
}

// converse gives a caller that has no session its conversation.
func (g *Gateway) converse(caller *Caller) {
	if caller.SessionID == "" {
		caller.SessionID = g.conversations.find(caller.Actor.String(), caller.ClientName, caller.ClientVersion)
	}
}

// rules are the rules that hold for the call: who passes a call on as it is
// has no way to declare an intent.
func (c *call) rules() policy.Rules {
	rules := c.cfg.Intent
	if c.passed != nil {
		rules.RequireIntent = false
	}
	return rules
}

// The time that the catalog gets to take over a list that was just told.
const (
	catalogTime = 500 * time.Millisecond
	catalogLook = 5 * time.Millisecond
)

// oneList says whether a result has no list of tools but the one named tools.
// Of several, or in another spelling, a client may take the one that was not
// looked at.
func oneList(result json.RawMessage) bool {
	lists := 0
	_ = strictjson.Members(result, func(name, _ []byte) error {
		if bytes.EqualFold(name, []byte("tools")) {
			lists++
			if string(name) != "tools" {
				lists++
			}
		}
		return nil
	})
	return lists <= 1
}

// visible leaves out of a list the tools that cannot be called. A tool that is
// not what the catalog knows is not callable either; before it is left out the
// catalog gets the chance to learn of it: from the client's list, where the
// server has it for some clients only, else from our own.
func (g *Gateway) visible(ctx context.Context, server string, result json.RawMessage, asked time.Time) json.RawMessage {
	tools := strictjson.Find(result, "tools")
	if strictjson.Kind(tools) != '[' {
		return result
	}
	kept, hidden, strange := judge(g.Catalog.Current(), server, tools)
	settle := func() {
		limit, look := time.NewTimer(catalogTime), time.NewTicker(catalogLook)
		defer limit.Stop()
		defer look.Stop()
		for waiting := true; waiting && len(strange) > 0; {
			select {
			case <-look.C:
			case <-limit.C:
				waiting = false
			case <-ctx.Done():
				waiting = false
			}
			kept, hidden, strange = judge(g.Catalog.Current(), server, tools)
		}
	}
	if len(strange) > 0 && g.Relays.Learn(server, strange) {
		settle()
	}
	if len(strange) > 0 {
		g.Relays.Refresh(ctx, server, asked)
		settle()
	}
	if hidden == 0 {
		return result
	}
	list := append(bytes.Join(kept, []byte{','}), ']')
	return jsonrpc.SetMember(result, "tools", append([]byte{'['}, list...))
}

// judge gives the tools of a list that can be called and the number of the
// others. strange are those that the catalog knows otherwise, or not at all.
func judge(s *catalog.Snapshot, server string, tools json.RawMessage) (kept [][]byte, hidden int, strange []json.RawMessage) {
	_ = strictjson.Elements(tools, func(raw []byte) error {
		name, _ := strictjson.String(strictjson.Find(raw, "name"))
		t := s.Tool(tool.ID{Server: server, Tool: name})
		same := t != nil && sameDefinition(t, server, raw)
		switch {
		case same && t.Status == policy.Callable:
			kept = append(kept, raw)
			return nil
		case !same:
			if _, err := tool.ParseDefinition(server, raw); err == nil { // what cannot be used nobody will know
				strange = append(strange, raw)
			}
		}
		hidden++
		return nil
	})
	return kept, hidden, strange
}

func sameDefinition(t *catalog.Tool, server string, raw json.RawMessage) bool {
	if bytes.Equal(t.Raw, raw) {
		return true
	}
	d, err := tool.ParseDefinition(server, raw)
	return err == nil && d.Fingerprint() == t.Fingerprint()
}

// Over says whether err means that the client's conversation has ended.
func Over(err error) bool { return errors.Is(err, upstream.ErrOver) }

// Overheard gives the client of a conversation what its server says by itself.
func (g *Gateway) Overhear(ctx context.Context, r RelayRequest, say func(upstream.Event), opened func()) error {
	if p := g.reachable(r.Server, r.Caller); p != nil {
		return p
	}
	if r.Conversation == nil {
		return fmt.Errorf("%w: there is none", upstream.ErrOver)
	}
	return r.Conversation.Overhear(ctx, say, opened)
}
