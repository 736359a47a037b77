package mcpserver

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
)

// arguments reads the parameters of a built-in tool. The first one that is
// wrong is the problem; an explicit null counts as not given, and so does an empty
// string that does not have to be there. Where a number or a boolean is due, one
// that is written as a string is taken.
type arguments struct {
	tool string
	raw  []byte
	bad  *problem.Problem
}

func (a *arguments) find(name string) []byte {
	if v := wirejson.Find(a.raw, name); wirejson.Kind(v) != 'n' {
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

// name reads a name that has to be there, without blanks around it.
func (a *arguments) name(name, what string) string { return strings.TrimSpace(a.text(name, what)) }

func (a *arguments) optional(name string) string {
	return take(a, name, "a string", "a string", wirejson.String)
}

// oneOf reads a string that has to be one of a few.
func (a *arguments) oneOf(name string, allowed ...string) string {
	return take(a, name, listed(allowed), allowed, func(v []byte) (string, bool) {
		s, ok := wirejson.String(v)
		return s, ok && slices.Contains(allowed, s)
	})
}

// listed is words as a sentence lists them.
func listed(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

func (a *arguments) flag(name string) bool {
	return take(a, name, "true or false", []bool{true, false}, written(wirejson.Bool))
}

// clamped reads a number and takes the nearest that is allowed.
func (a *arguments) clamped(name string, least, most int) int {
	allowed := "an integer from " + strconv.Itoa(least) + " to " + strconv.Itoa(most)
	return take(a, name, allowed, allowed, written(func(v []byte) (int, bool) {
		n, ok := whole(v)
		return max(least, min(most, n)), ok
	}))
}

func (a *arguments) atLeast(name string, least int) int {
	allowed := "an integer, at least " + strconv.Itoa(least)
	return take(a, name, allowed, allowed, written(func(v []byte) (int, bool) {
		n, ok := whole(v)
		return n, ok && n >= least
	}))
}

// argumentLimits bound JSON as text, as those of a request bound it.
var argumentLimits = wirejson.Limits{Bytes: 4 << 20, Depth: 64}

// written returns what reads a value, or the JSON text of one.
func written[T any](read func([]byte) (T, bool)) func([]byte) (T, bool) {
	return func(v []byte) (T, bool) {
		value, ok := read(v)
		if text, isText := wirejson.String(v); !ok && isText {
			inside := []byte(strings.TrimSpace(text))
			if wirejson.Check(inside, argumentLimits) == nil {
				return read(inside)
			}
		}
		return value, ok
	}
}

// take reads a parameter; the zero value when it is not given.
func take[T any](a *arguments, name, must string, allowed any, read func([]byte) (T, bool)) (value T) {
	if v := a.find(name); v != nil && string(v) != `""` {
		var ok bool
		if value, ok = read(v); !ok {
			a.wrong(name, v, must, allowed)
		}
	}
	return value
}

func (a *arguments) missing(name, what string) {
	a.set(problem.New(problem.InvalidParameter, "The parameter "+name+" is missing: give "+what+".",
		"Call "+a.tool+" again with "+name+".").With("parameter", name).With("allowed", what))
}

func (a *arguments) wrong(name string, value []byte, must string, allowed any) {
	text, ok := wirejson.String(value)
	if !ok {
		text = string(value)
	}
	a.set(problem.New(problem.InvalidParameter, "Invalid "+name+" "+session.QuoteText(text)+": must be "+must,
		"Call "+a.tool+" again with "+name+" as allowed.").
		With("parameter", name).With("value", wirejson.Clip(text, session.MaxIdentity)).With("allowed", allowed))
}

func (a *arguments) set(p *problem.Problem) {
	if a.bad == nil {
		a.bad = p
	}
}

// whole reads a whole number, also one that is written as 10.0 or 1e1, as some
// models do. One that does not fit becomes the largest that does.
func whole(value []byte) (int, bool) {
	if wirejson.Kind(value) != '0' {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(value), 64)
	if err != nil || f != math.Trunc(f) {
		return 0, false
	}
	return int(max(math.MinInt32, min(math.MaxInt32, f))), true
}
