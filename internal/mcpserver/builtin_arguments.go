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

// arguments reads the parameters of a built-in tool and keeps the first problem. Null counts as missing,
// and so does an empty string for an optional parameter. Numbers and booleans may be given as strings.
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

// text reads a required string.
func (a *arguments) text(name, what string) string {
	if a.find(name) == nil {
		a.missing(name, what)
		return ""
	}
	return a.optional(name)
}

// name reads a required name without surrounding blanks.
func (a *arguments) name(name, what string) string { return strings.TrimSpace(a.text(name, what)) }

func (a *arguments) optional(name string) string {
	return take(a, name, "a string", "a string", wirejson.String)
}

// oneOf reads one of several words.
func (a *arguments) oneOf(name string, allowed ...string) string {
	return take(a, name, listed(allowed), allowed, func(v []byte) (string, bool) {
		s, ok := wirejson.String(v)
		return s, ok && slices.Contains(allowed, s)
	})
}

// listed joins words for a sentence.
func listed(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

func (a *arguments) flag(name string) bool {
	return take(a, name, "true or false", []bool{true, false}, orText(wirejson.Bool))
}

// clamped reads a number and clamps it to the allowed range.
func (a *arguments) clamped(name string, least, most int) int {
	allowed := "an integer from " + strconv.Itoa(least) + " to " + strconv.Itoa(most)
	return take(a, name, allowed, allowed, orText(func(v []byte) (int, bool) {
		n, ok := whole(v)
		return max(least, min(most, n)), ok
	}))
}

func (a *arguments) atLeast(name string, least int) int {
	allowed := "an integer, at least " + strconv.Itoa(least)
	return take(a, name, allowed, allowed, orText(func(v []byte) (int, bool) {
		n, ok := whole(v)
		return n, ok && n >= least
	}))
}

// argumentLimits limit JSON that is passed as a string, like those of a request.
var argumentLimits = wirejson.Limits{Bytes: 4 << 20, Depth: 64}

// orText returns a reader that also accepts the value as JSON text in a string.
func orText[T any](read func([]byte) (T, bool)) func([]byte) (T, bool) {
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

// take reads a parameter; the zero value if missing.
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

// whole reads an integer, also as 10.0 or 1e1, as some models write it. It clamps to the largest int.
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
