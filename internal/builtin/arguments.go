package builtin

import (
	"context"
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"mcpproxy/internal/gateway"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/rawjson"
	"mcpproxy/internal/reply"
	"mcpproxy/internal/session"
)

// retrieveTools finds tools.
func (q *request) retrieveTools(ctx context.Context) session.Reply {
	r := gateway.RetrieveRequest{Caller: *q.Caller}
	a := arguments{tool: retrieveTools, raw: q.args}
	r.Query = a.text("query", "what you want to do, in words")
	r.Limit = a.clamped("limit", 1, 100)
	r.Operation = a.oneOf("operation_type", "read", "write", "destructive")
	r.Detail = a.oneOf("detail", "full", "compact")
	r.IncludeDisabled = a.flag("include_disabled")
	if a.bad != nil {
		return q.refuse(ctx, a.bad)
	}
	found, err := q.gateway.Retrieve(ctx, r)
	return q.answered(ctx, found, err)
}

// readResult gives the next part of a large result.
func (q *request) readResult(ctx context.Context) session.Reply {
	r := gateway.ReadRequest{Caller: *q.Caller}
	a := arguments{tool: readResult, raw: q.args}
	r.Handle = a.text("handle", "the handle that the cut result names")
	r.Path = a.optional("path")
	r.Offset = a.atLeast("offset", 0)
	r.Limit = a.atLeast("limit", 1)
	if a.bad != nil {
		return q.refuse(ctx, a.bad)
	}
	part, err := q.gateway.ReadResult(ctx, r)
	return q.answered(ctx, part, err)
}

// answered is the result of a built-in tool.
func (q *request) answered(ctx context.Context, raw json.RawMessage, err error) session.Reply {
	if err != nil {
		return q.refuse(ctx, err)
	}
	return q.reply.Tool(q.modern, raw)
}

// arguments reads the parameters of a built-in tool. The first one that is
// wrong is the problem; an explicit null counts as not given.
type arguments struct {
	tool string
	raw  []byte
	bad  *problem.Problem
}

func (a *arguments) find(name string) []byte {
	if v := rawjson.Find(a.raw, name); rawjson.Kind(v) != 'n' {
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
	s, ok := rawjson.String(v)
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
	s, ok := rawjson.String(v)
	if ok {
		for _, one := range allowed {
			if s == one {
				return s
			}
		}
	}
	a.wrong(name, v, "must be "+listed(allowed), allowed)
	return ""
}

// listed is words as a sentence lists them.
func listed(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

func (a *arguments) flag(name string) bool {
	v := a.find(name)
	if v == nil {
		return false
	}
	b, ok := rawjson.Bool(v)
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
	text, ok := rawjson.String(value)
	if !ok {
		text = string(value)
	}
	a.set(problem.New(problem.InvalidParameter, "Invalid "+name+" "+reply.Quote(text)+": "+must,
		"Call "+a.tool+" again with "+name+" as allowed.").
		With("parameter", name).With("value", rawjson.Clip(text, reply.MaxIdentity)).With("allowed", allowed))
}

func (a *arguments) set(p *problem.Problem) {
	if a.bad == nil {
		a.bad = p
	}
}

// whole reads a whole number, also one that is written as 10.0 or 1e1, as some
// models do. One that does not fit becomes the largest that does.
func whole(value []byte) (int, bool) {
	if rawjson.Kind(value) != '0' {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(value), 64)
	if err != nil || f != math.Trunc(f) {
		return 0, false
	}
	return int(max(math.MinInt32, min(math.MaxInt32, f))), true
}
