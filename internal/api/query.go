package api

import (
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"mcpproxy/internal/catalog/search"
	"mcpproxy/internal/problem"
)

// readQuery validates the query against the fields. It rejects unknown parameters, because a misspelt filter would
// select everything. A missing or empty parameter has no values, or its default if it is a number. The error is an
// INVALID_PARAMETER problem.
func (in *inputSpec) readQuery(raw string) (url.Values, error) {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return nil, problem.New(problem.InvalidRequest, "The query of the URL cannot be read: "+err.Error(),
			"Percent-encode the values.")
	}
	if err := rejectUnknownParams(in.fieldNames(inQuery), values); err != nil {
		return nil, err
	}
	q := url.Values{}
	for _, f := range in.fieldsIn(inQuery) {
		given, err := f.readValues(values[f.name])
		if err != nil {
			return nil, err
		}
		switch {
		case len(given) > 0:
			q[f.name] = given
		case f.defaultValue != 0:
			q[f.name] = []string{strconv.Itoa(f.defaultValue)}
		}
	}
	return q, nil
}

func rejectUnknownParams(known []string, values url.Values) error {
	for name := range values {
		if slices.Contains(known, name) {
			continue
		}
		p := problem.Newf(problem.InvalidParameter, "This route has no parameter '%s'.", name).
			With("parameter", name).With("value", values.Get(name)).With("allowed", emptyIfNil(known))
		if near := search.ClosestName(name, known); near != "" {
			return p.WithHint("Did you mean " + near + "?")
		}
		if len(known) == 0 {
			return p.WithHint("This route takes no parameters.")
		}
		return p.WithHint("The parameters are " + strings.Join(known, ", ") + ".")
	}
	return nil
}

// readValues returns the validated values of one parameter.
func (f *inputField) readValues(given []string) ([]string, error) {
	if f.typ.Kind() != reflect.Slice && len(given) > 1 {
		return nil, newInvalidValueError(f.name, strings.Join(given, ", "), "one value")
	}
	if f.split {
		given = strings.Split(strings.Join(given, ","), ",")
	}
	values := slices.DeleteFunc(slices.Clone(given), func(v string) bool { return v == "" })
	if len(values) == 0 && f.required {
		return nil, problem.Newf(problem.InvalidParameter, "The parameter '%s' is required.", f.name).
			WithHint(f.doc).With("parameter", f.name)
	}
	for _, v := range values {
		if err := f.validateValue(v); err != nil {
			return nil, err
		}
	}
	return values, nil
}

func (f *inputField) validateValue(value string) error {
	allowed := f.allowedValues()
	switch {
	case f.typ == reflect.TypeFor[time.Time]():
		if _, err := parseTime(value); err != nil {
			return newInvalidValueError(f.name, value, "a time such as 2026-01-15T10:30:00Z, or a date such as 2026-01-15")
		}
	case f.typ.Kind() == reflect.Int:
		if n, err := strconv.Atoi(value); err != nil || n < f.min || n > f.max {
			return newInvalidValueError(f.name, value, fmt.Sprintf("a whole number from %d to %d", f.min, f.max))
		}
	case allowed != nil && !slices.Contains(allowed, value):
		return newInvalidValueError(f.name, value, allowed...)
	}
	return nil
}
