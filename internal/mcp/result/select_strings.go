package result

import (
	"strings"

	"mcpproxy/internal/mcp/wirejson"
)

// decodeTwoStrings decodes the input and the argument of a function of two strings.
func decodeTwoStrings(in, arg []byte) (a, b string, err error) {
	a, one := wirejson.String(in)
	b, two := wirejson.String(arg)
	if !one || !two {
		err = newDataError("%s and %s are not both strings", kindName(in), kindName(arg))
	}
	return a, b, err
}

// newStringPredicate returns a function of two strings.
func newStringPredicate(f func(in, arg string) bool) func(*evaluation, []byte, []byte) ([]byte, error) {
	return func(_ *evaluation, in, arg []byte) ([]byte, error) {
		a, b, err := decodeTwoStrings(in, arg)
		return boolJSON(f(a, b)), err
	}
}

// newStringTrimmer returns a function that removes a prefix or suffix.
func newStringTrimmer(f func(s, off string) string) func(*evaluation, []byte, []byte) ([]byte, error) {
	return func(r *evaluation, in, arg []byte) ([]byte, error) {
		a, b, err := decodeTwoStrings(in, arg)
		if err != nil {
			return nil, err
		}
		return r.newStringJSON(f(a, b))
	}
}

func joinValues(r *evaluation, in, by []byte) ([]byte, error) {
	if kindName(by) != "string" {
		return nil, newDataError("%s cannot be joined by %s", kindName(in), kindName(by))
	}
	var out []byte
	err := r.emitElements(in, func(e []byte) error {
		var s []byte
		switch kindName(e) {
		case "null":
			s = []byte(`""`)
		case "array", "object":
			return newDataError("%s cannot be joined", kindName(e))
		default:
			var err error
			if s, err = r.toStringJSON(e); err != nil {
				return err
			}
		}
		if err := r.chargeOutput(len(s) + len(by)); err != nil {
			return err
		}
		if out == nil {
			out = append(out, '"')
		} else {
			out = append(out, by[1:len(by)-1]...)
		}
		out = append(out, s[1:len(s)-1]...)
		return nil
	})
	if out == nil {
		return []byte(`""`), err
	}
	return append(out, '"'), err
}

func toNumber(r *evaluation, in []byte) ([]byte, error) {
	switch s, ok := wirejson.String(in); {
	case kindName(in) == "number":
		return in, nil
	case ok:
		text := []byte(strings.TrimSpace(s))
		if err := r.chargeOutput(len(text)); err != nil {
			return nil, err
		}
		if wirejson.Check(text, wirejson.Limits{Bytes: maxInput}) == nil && kindName(text) == "number" {
			return text, nil
		}
	}
	return nil, newDataError("%s is not a number", kindName(in))
}

func parseJSONText(r *evaluation, in []byte) ([]byte, error) {
	s, ok := wirejson.String(in)
	if !ok {
		return nil, newDataError("%s is not JSON text", kindName(in))
	}
	if err := r.chargeOutput(len(s)); err != nil {
		return nil, err
	}
	text := []byte(strings.TrimSpace(s))
	if wirejson.Check(text, wirejson.Limits{Bytes: maxInput, Depth: wirejson.RelayDepth}) != nil {
		return nil, newDataError("a text is not JSON")
	}
	return text, nil
}

// newStringFunction returns a function that converts a string. The error for another value ends with cannot.
func newStringFunction(cannot string, convert func(s string) string) jqFunction {
	return newNoArgFunction(func(r *evaluation, in []byte) ([]byte, error) {
		s, ok := wirejson.String(in)
		if !ok {
			return nil, newDataError("%s %s", kindName(in), cannot)
		}
		return r.newStringJSON(convert(s))
	})
}

// shiftLetters returns a conversion that adds by to the characters between from and to.
func shiftLetters(from, to, by rune) func(s string) string {
	return func(s string) string {
		return strings.Map(func(c rune) rune {
			if from <= c && c <= to {
				c += by
			}
			return c
		}, s)
	}
}

func splitString(r *evaluation, in, by []byte) ([]byte, error) {
	a, b, err := decodeTwoStrings(in, by)
	if err != nil {
		return nil, err
	}
	var parts arrayBuilder
	if a == "" {
		return parts.finishArray(), nil
	}
	for part := range strings.SplitSeq(a, b) {
		text, err := r.newStringJSON(part)
		if err == nil {
			err = parts.appendElement(r, text)
		}
		if err != nil {
			return nil, err
		}
	}
	return parts.finishArray(), nil
}
