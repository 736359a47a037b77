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

// toolArguments reads the parameters of a built-in tool and keeps the first problem. Null counts as missing,
// and so does an empty string for an optional parameter. Numbers and booleans may be given as strings.
type toolArguments struct {
	tool string
	raw  []byte
	bad  *problem.Problem
}

func (a *toolArguments) findArgument(name string) []byte {
	if v := wirejson.Find(a.raw, name); wirejson.Kind(v) != 'n' {
		return v
	}
	return nil
}

// requiredText reads a required string.
func (a *toolArguments) requiredText(name, what string) string {
	if a.findArgument(name) == nil {
		a.setMissing(name, what)
		return ""
	}
	return a.optionalText(name)
}

// requiredName reads a required name without surrounding blanks.
func (a *toolArguments) requiredName(name, what string) string {
	return strings.TrimSpace(a.requiredText(name, what))
}

func (a *toolArguments) optionalText(name string) string {
	return readArgument(a, name, "a string", "a string", wirejson.String)
}

// optionalWord reads one of several words.
func (a *toolArguments) optionalWord(name string, allowed ...string) string {
	return readArgument(a, name, joinWithOr(allowed), allowed, func(v []byte) (string, bool) {
		s, ok := wirejson.String(v)
		return s, ok && slices.Contains(allowed, s)
	})
}

// joinWithOr joins words for a sentence.
func joinWithOr(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

func (a *toolArguments) optionalBool(name string) bool {
	return readArgument(a, name, "true or false", []bool{true, false}, withJSONTextFallback(wirejson.Bool))
}

// clampedInt reads a number and clamps it to the allowed range.
func (a *toolArguments) clampedInt(name string, least, most int) int {
	allowed := "an integer from " + strconv.Itoa(least) + " to " + strconv.Itoa(most)
	return readArgument(a, name, allowed, allowed, withJSONTextFallback(func(v []byte) (int, bool) {
		n, ok := parseWholeNumber(v)
		return max(least, min(most, n)), ok
	}))
}

func (a *toolArguments) intAtLeast(name string, least int) int {
	allowed := "an integer, at least " + strconv.Itoa(least)
	return readArgument(a, name, allowed, allowed, withJSONTextFallback(func(v []byte) (int, bool) {
		n, ok := parseWholeNumber(v)
		return n, ok && n >= least
	}))
}

// argumentLimits limit JSON that is passed as a string, like those of a request.
var argumentLimits = wirejson.Limits{Bytes: 4 << 20, Depth: 64}

// withJSONTextFallback returns a reader that also accepts the value as JSON text in a string.
func withJSONTextFallback[T any](read func([]byte) (T, bool)) func([]byte) (T, bool) {
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

// readArgument reads a parameter; the zero value if missing.
func readArgument[T any](a *toolArguments, name, must string, allowed any, read func([]byte) (T, bool)) (value T) {
	if v := a.findArgument(name); v != nil && string(v) != `""` {
		var ok bool
		if value, ok = read(v); !ok {
			a.setInvalid(name, v, must, allowed)
		}
	}
	return value
}

func (a *toolArguments) setMissing(name, what string) {
	a.setProblem(problem.New(problem.InvalidParameter, "The parameter "+name+" is missing: give "+what+".",
		"Call "+a.tool+" again with "+name+".").With("parameter", name).With("allowed", what))
}

func (a *toolArguments) setInvalid(name string, value []byte, must string, allowed any) {
	text, ok := wirejson.String(value)
	if !ok {
		text = string(value)
	}
	a.setProblem(problem.New(problem.InvalidParameter, "Invalid "+name+" "+session.QuoteClipped(text)+": must be "+must,
		"Call "+a.tool+" again with "+name+" as allowed.").
		With("parameter", name).With("value", wirejson.ClipText(text, session.MaxIdentity)).With("allowed", allowed))
}

func (a *toolArguments) setProblem(p *problem.Problem) {
	if a.bad == nil {
		a.bad = p
	}
}

// parseWholeNumber reads an integer, also as 10.0 or 1e1, as some models write it. It clamps to the largest int.
func parseWholeNumber(value []byte) (int, bool) {
	if wirejson.Kind(value) != '0' {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(value), 64)
	if err != nil || f != math.Trunc(f) {
		return 0, false
	}
	return int(max(math.MinInt32, min(math.MaxInt32, f))), true
}
