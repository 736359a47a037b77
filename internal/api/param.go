package api

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"mcpproxy/internal/problem"
	"mcpproxy/internal/search"
)

// kind is how the value of a parameter is read.
type kind uint8

const (
	text   kind = iota
	list        // may be repeated; with split, commas separate too
	number      // min to max
	moment      // RFC 3339, or a date
)

type place uint8

const (
	inQuery place = iota
	inPath
)

// param is one parameter of a route: what the document says and what is
// checked are the same.
type param struct {
	name     string
	in       place
	kind     kind
	doc      string
	allowed  []string // of text and list; nil = anything
	split    bool
	min, max int
	preset   int
	required bool
}

// query holds the checked parameters of one request. A parameter that was not
// given, or given empty, has the zero value, and a number its preset.
type query struct {
	texts   map[string][]string
	numbers map[string]int
	moments map[string]time.Time
}

func (q query) text(name string) string {
	if v := q.texts[name]; len(v) > 0 {
		return v[0]
	}
	return ""
}

func (q query) list(name string) []string      { return q.texts[name] }
func (q query) number(name string) int         { return q.numbers[name] }
func (q query) moment(name string) time.Time   { return q.moments[name] }
func (q query) given(name string) (given bool) { _, given = q.texts[name]; return given }

// readQuery checks raw against the parameters of a route. The error is an
// INVALID_PARAMETER problem. A parameter that the route does not have is
// refused too: a misspelt filter would select everything.
func readQuery(params []param, raw string) (query, error) {
	q := query{map[string][]string{}, map[string]int{}, map[string]time.Time{}}
	values, err := url.ParseQuery(raw)
	if err != nil {
		return q, problem.New(problem.InvalidRequest, "The query of the URL cannot be read: "+err.Error(),
			"Percent-encode the values.")
	}
	if err := checkNames(params, values); err != nil {
		return q, err
	}
	for _, p := range params {
		if p.in != inQuery {
			continue
		}
		q.numbers[p.name] = p.preset
		if err := p.read(&q, values[p.name]); err != nil {
			return q, err
		}
	}
	return q, nil
}

func checkNames(params []param, values url.Values) error {
	var known []string
	for _, p := range params {
		if p.in == inQuery {
			known = append(known, p.name)
		}
	}
	for name := range values {
		if slices.Contains(known, name) {
			continue
		}
		p := problem.Newf(problem.InvalidParameter, "There is no parameter '%s' here.", name).
			With("parameter", name).With("value", values.Get(name)).With("allowed", nonNil(known))
		if near := search.Nearest(name, known, 1); len(near) > 0 {
			return p.WithHint("Did you mean " + near[0] + "?")
		}
		if len(known) == 0 {
			return p.WithHint("This route takes no parameters.")
		}
		return p.WithHint("The parameters are " + strings.Join(known, ", ") + ".")
	}
	return nil
}

// read checks the values of one parameter and puts them into q.
func (p param) read(q *query, given []string) error {
	if p.kind != list && len(given) > 1 {
		return p.refuse(strings.Join(given, ", "), "one value")
	}
	var values []string
	for _, v := range given {
		if p.split {
			values = append(values, strings.Split(v, ",")...)
		} else {
			values = append(values, v)
		}
	}
	values = slices.DeleteFunc(values, func(v string) bool { return v == "" })
	if len(values) == 0 {
		if p.required {
			return problem.Newf(problem.InvalidParameter, "The parameter '%s' is required.", p.name).
				WithHint(p.doc).With("parameter", p.name)
		}
		return nil
	}
	q.texts[p.name] = values
	return p.convert(q, values)
}

func (p param) convert(q *query, values []string) error {
	switch p.kind {
	case number:
		n, err := strconv.Atoi(values[0])
		if err != nil || n < p.min || n > p.max {
			return p.refuse(values[0], fmt.Sprintf("a whole number from %d to %d", p.min, p.max))
		}
		q.numbers[p.name] = n
	case moment:
		t, err := parseMoment(values[0])
		if err != nil {
			return p.refuse(values[0], "a time such as 2026-01-15T10:30:00Z, or a date such as 2026-01-15")
		}
		q.moments[p.name] = t
	default:
		for _, v := range values {
			if p.allowed != nil && !slices.Contains(p.allowed, v) {
				return p.refuse(v, p.allowed...)
			}
		}
	}
	return nil
}

// parseMoment reads a time. A plus sign that nobody encoded reads as a space.
func parseMoment(s string) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339Nano, strings.ReplaceAll(s, " ", "+")); err == nil {
		return t, nil
	}
	return time.Parse(time.DateOnly, s)
}

func (p param) refuse(value string, allowed ...string) error {
	return invalidValue(p.name, value, allowed...)
}

// invalidValue is the refusal of a value: it names the parameter, the value and
// what is allowed.
func invalidValue(name, value string, allowed ...string) *problem.Problem {
	return problem.Newf(problem.InvalidParameter, "Invalid value '%s' for %s: must be %s", clip(value), name, oneOf(allowed)).
		With("parameter", name).With("value", clip(value)).With("allowed", nonNil(allowed))
}

func oneOf(words []string) string {
	switch len(words) {
	case 0:
		return "left out"
	case 1:
		return words[0]
	case 2:
		return words[0] + " or " + words[1]
	}
	return strings.Join(words[:len(words)-1], ", ") + ", or " + words[len(words)-1]
}

// maxShown bounds a value that is given back in an error, in bytes.
const maxShown = 200

func clip(s string) string {
	if len(s) > maxShown {
		s = s[:maxShown] + "…"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// describe is the parameter in the document.
func (p param) describe() *huma.Param {
	d := &huma.Param{Name: p.name, In: "query", Description: p.doc, Required: p.required, Schema: p.schema()}
	if p.in == inPath {
		d.In, d.Required = "path", true
	}
	if p.kind == list {
		explode := true
		d.Explode = &explode
	}
	return d
}

func (p param) schema() *huma.Schema {
	s := &huma.Schema{Type: huma.TypeString}
	for _, v := range p.allowed {
		s.Enum = append(s.Enum, v)
	}
	switch p.kind {
	case number:
		low, high := float64(p.min), float64(p.max)
		s = &huma.Schema{Type: huma.TypeInteger, Minimum: &low, Maximum: &high}
		if p.preset >= p.min {
			s.Default = p.preset
		}
	case list:
		return &huma.Schema{Type: huma.TypeArray, Items: s}
	case moment:
		s.Examples = []any{"2026-01-15T10:30:00Z"}
	}
	return s
}

func nonNil[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}
