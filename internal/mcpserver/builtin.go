package mcpserver

import (
	"context"
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"mcpproxy/internal/gateway"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/strictjson"
)

// retrieveTools finds tools.
func (x *exchange) retrieveTools(ctx context.Context, args []byte) outcome {
	r := gateway.RetrieveRequest{Caller: x.caller()}
	a := arguments{tool: retrieveTools, raw: args}
	r.Query = a.text("query", "what you want to do, in words")
	r.Limit = a.clamped("limit", 1, 100)
	r.Operation = a.oneOf("operation_type", "read", "write", "destructive")
	r.Detail = a.oneOf("detail", "full", "compact")
	r.IncludeDisabled = a.flag("include_disabled")
	if a.bad != nil {
		return outcome{result: x.refusal(a.bad)}
	}
	return x.answer(x.s.Gateway.Retrieve(ctx, r))
}

// readResult gives the next part of a large result.
func (x *exchange) readResult(ctx context.Context, args []byte) outcome {
	r := gateway.ReadRequest{Caller: x.caller()}
	a := arguments{tool: readResult, raw: args}
	r.Handle = a.text("handle", "the handle that the cut result names")
	r.Path = a.optional("path")
	r.Offset = a.atLeast("offset", 0)
	r.Limit = a.atLeast("limit", 1)
	if a.bad != nil {
		return outcome{result: x.refusal(a.bad)}
	}
	return x.answer(x.s.Gateway.ReadResult(ctx, r))
}

// upstreamServers shows the servers. An agent may look, nothing else.
func (x *exchange) upstreamServers(ctx context.Context, args []byte) outcome {
	a := arguments{tool: upstreamServers, raw: args}
	operation := a.oneOf("operation", "list", "get")
	if operation == "" && a.bad == nil {
		a.missing("operation", "list or get")
	}
	name := ""
	if operation == "get" {
		name = a.text("name", "the server to get")
	}
	if a.bad != nil {
		return outcome{result: x.refusal(a.bad)}
	}
	servers := []serverEntry{}
	if operation == "get" {
		one, err := x.s.Gateway.Server(ctx, name)
		if err != nil {
			return outcome{result: x.refusal(err)}
		}
		servers = append(servers, entryOf(one))
	} else {
		for _, one := range x.s.Gateway.Servers(ctx) {
			servers = append(servers, entryOf(one))
		}
	}
	return x.answer(json.Marshal(struct {
		Servers []serverEntry `json:"servers"`
	}{servers}))
}

// serverEntry is what an agent gets to see of a server. How the server is
// started and reached is the person's business.
type serverEntry struct {
	Name        string          `json:"name"`
	Protocol    string          `json:"protocol"`
	Enabled     bool            `json:"enabled"`
	Quarantined bool            `json:"quarantined"`
	State       string          `json:"state"`
	ToolCount   int             `json:"tool_count"`
	LastError   string          `json:"last_error,omitempty"`
	Tools       *gateway.Counts `json:"tools,omitempty"`
}

func entryOf(v gateway.ServerView) serverEntry {
	return serverEntry{v.Name, v.Protocol, v.Enabled, v.Quarantined, v.State, v.ToolCount, v.LastError, v.Tools}
}

// answer is the result of a built-in tool.
func (x *exchange) answer(raw json.RawMessage, err error) outcome {
	if err != nil {
		return outcome{result: x.refusal(err)}
	}
	return outcome{result: x.ownResult(raw)}
}

// arguments reads the parameters of a built-in tool. The first one that is
// wrong is the problem; an explicit null counts as not given.
type arguments struct {
	tool string
	raw  []byte
	bad  *problem.Problem
}

func (a *arguments) find(name string) []byte {
	if v := strictjson.Find(a.raw, name); strictjson.Kind(v) != 'n' {
		return v
	}
	return nil
}

// text reads a string that has to be there.
func (a *arguments) text(name, what string) string {
	if a.find(name) == nil {
		a.missing(name, what)
		return ""
	}
	return a.optional(name)
}

func (a *arguments) optional(name string) string {
	v := a.find(name)
	if v == nil {
		return ""
	}
	s, ok := strictjson.String(v)
	if !ok {
		a.wrong(name, v, "must be a string", "a string")
	}
	return s
}

// oneOf reads a string that has to be one of a few; "" when it is not given.
func (a *arguments) oneOf(name string, allowed ...string) string {
	v := a.find(name)
	if v == nil {
		return ""
	}
	s, ok := strictjson.String(v)
	if ok {
		for _, one := range allowed {
			if s == one {
				return s
			}
		}
	}
	last := len(allowed) - 1
	a.wrong(name, v, "must be "+strings.Join(allowed[:last], ", ")+" or "+allowed[last], allowed)
	return ""
}

func (a *arguments) flag(name string) bool {
	v := a.find(name)
	if v == nil {
		return false
	}
	b, ok := strictjson.Bool(v)
	if !ok {
		a.wrong(name, v, "must be true or false", []bool{true, false})
	}
	return b
}

// clamped reads a number and takes the nearest that is allowed; 0 when it is
// not given.
func (a *arguments) clamped(name string, least, most int) int {
	v := a.find(name)
	if v == nil {
		return 0
	}
	n, ok := whole(v)
	if !ok {
		allowed := "an integer from " + strconv.Itoa(least) + " to " + strconv.Itoa(most)
		a.wrong(name, v, "must be "+allowed, allowed)
	}
	return max(least, min(most, n))
}

// atLeast reads a number; 0 when it is not given.
func (a *arguments) atLeast(name string, least int) int {
	v := a.find(name)
	if v == nil {
		return 0
	}
	n, ok := whole(v)
	if !ok || n < least {
		allowed := "an integer, at least " + strconv.Itoa(least)
		a.wrong(name, v, "must be "+allowed, allowed)
	}
	return n
}

func (a *arguments) missing(name, what string) {
	a.set(problem.New(problem.InvalidParameter, "The parameter "+name+" is missing: give "+what+".",
		"Call "+a.tool+" again with "+name+".").With("parameter", name).With("allowed", what))
}

func (a *arguments) wrong(name string, value []byte, must string, allowed any) {
	text, ok := strictjson.String(value)
	if !ok {
		text = string(value)
	}
	a.set(problem.New(problem.InvalidParameter, "Invalid "+name+" "+quote(text)+": "+must,
		"Call "+a.tool+" again with "+name+" as allowed.").
		With("parameter", name).With("value", bounded(text, maxIdentity)).With("allowed", allowed))
}

func (a *arguments) set(p *problem.Problem) {
	if a.bad == nil {
		a.bad = p
	}
}

// whole reads a whole number, also one that is written as 10.0 or 1e1, as some
// models do. One that does not fit becomes the largest that does.
func whole(value []byte) (int, bool) {
	if strictjson.Kind(value) != '0' {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(value), 64)
	if err != nil || f != math.Trunc(f) {
		return 0, false
	}
	return int(max(math.MinInt32, min(math.MaxInt32, f))), true
}
