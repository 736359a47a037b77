package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"

	"mcpproxy/internal/mcp/wirejson"
)

// maxDepth is the maximum nesting depth of a definition. Real definitions have up to 18 levels.
const maxDepth = 128

// CanonicalJSON returns the canonical JSON of raw by RFC 8785: members sorted by their UTF-16 code units, numbers as
// ECMAScript writes them, no white space, and as few escapes as possible. Unlike RFC 8785, it is lossless. A number
// that ECMAScript would round (beyond the digits of a float64, and -0) keeps its value, and a lone surrogate keeps its
// escape. So two texts have the same canonical form only if they have the same meaning.
//
// It fails if raw is not JSON in UTF-8, is nested too deep, or contains an object with two members of the same name.
func CanonicalJSON(raw []byte) ([]byte, error) {
	if wirejson.Check(raw, wirejson.Limits{}) != nil && !json.Valid(raw) { // Check is faster and stricter
		return nil, errors.New("not valid JSON")
	}
	if !utf8.Valid(raw) {
		return nil, errors.New("not valid UTF-8")
	}
	c := canonicalizer{Cursor: wirejson.Cursor{Text: raw}, out: make([]byte, 0, len(raw))}
	if err := c.appendValue(0); err != nil {
		return nil, err
	}
	return c.out, nil
}

// canonicalizer writes the canonical form of the values under its cursor.
type canonicalizer struct {
	wirejson.Cursor
	out     []byte
	members []canonicalMember // of the open objects
	scratch []byte
}

// canonicalMember is a member of an open object as it was written to out.
type canonicalMember struct {
	start, name, end int // out[start:name] is "name": and out[start:end] is the whole member
}

func (c *canonicalizer) appendValue(depth int) error {
	switch next := c.Peek(); next {
	case '{', '[':
		if depth == maxDepth {
			return fmt.Errorf("nested deeper than %d levels", maxDepth)
		}
		if next == '{' {
			return c.appendObject(depth + 1)
		}
		return c.appendArray(depth + 1)
	case '"':
		value := c.ReadValue()
		c.out = appendCanonicalString(c.out, value[1:len(value)-1])
	case 't', 'f', 'n':
		c.out = append(c.out, c.ReadValue()...)
	default:
		c.out = appendCanonicalNumber(c.out, c.ReadValue())
	}
	return nil
}

func (c *canonicalizer) appendArray(depth int) error {
	c.out = append(c.out, '[')
	end := c.Enter('[')
	for first := true; c.More(end); first = false {
		if !first {
			c.out = append(c.out, ',')
		}
		if err := c.appendValue(depth); err != nil {
			return err
		}
	}
	c.out = append(c.out, ']')
	return nil
}

// appendObject writes the members in input order, each with a comma, and sorts them
// afterwards.
func (c *canonicalizer) appendObject(depth int) error {
	base := len(c.members)
	c.out = append(c.out, '{')
	for end := c.Enter('{'); c.More(end); {
		m := canonicalMember{start: len(c.out)}
		c.out = appendCanonicalString(c.out, c.ReadName())
		m.name = len(c.out)
		c.out = append(c.out, ':')
		if err := c.appendValue(depth); err != nil {
			return err
		}
		c.out = append(c.out, ',')
		m.end = len(c.out)
		c.members = append(c.members, m)
	}
	if err := c.sortMembers(c.members[base:]); err != nil {
		return err
	}
	if len(c.members) > base { // removes the last comma
		c.out = c.out[:len(c.out)-1]
	}
	c.members = c.members[:base]
	c.out = append(c.out, '}')
	return nil
}

// sortMembers sorts the members at the end of out.
func (c *canonicalizer) sortMembers(members []canonicalMember) error {
	compare := func(a, b canonicalMember) int {
		return compareCanonicalNames(c.out[a.start:a.name], c.out[b.start:b.name])
	}
	if !slices.IsSortedFunc(members, compare) {
		start := members[0].start
		slices.SortFunc(members, compare)
		c.scratch = append(c.scratch[:0], c.out[start:]...)
		at := start
		for k, m := range members {
			n := copy(c.out[at:], c.scratch[m.start-start:m.end-start])
			members[k] = canonicalMember{at, at + m.name - m.start, at + n}
			at += n
		}
	}
	for k := 1; k < len(members); k++ {
		if compare(members[k-1], members[k]) == 0 {
			m := members[k]
			return fmt.Errorf("an object has two members named %.100s", c.out[m.start:m.name])
		}
	}
	return nil
}

// compareCanonicalNames compares two names in canonical form with their quotes.
func compareCanonicalNames(a, b []byte) int {
	a, b = a[1:len(a)-1], b[1:len(b)-1]
	if wirejson.IsUnescapedASCII(a) && wirejson.IsUnescapedASCII(b) {
		return bytes.Compare(a, b)
	}
	return slices.Compare(utf16Units(a), utf16Units(b))
}

// utf16Units returns the UTF-16 code units of a canonical string without its quotes.
func utf16Units(text []byte) []uint16 {
	var out []uint16
	for len(text) > 0 {
		r, n := rune(text[0]), 1
		switch {
		case r == '\\':
			r, n = wirejson.DecodeEscape(text)
		case r >= utf8.RuneSelf:
			r, n = utf8.DecodeRune(text)
		}
		if r < 0x10000 { // also a lone surrogate
			out = append(out, uint16(r))
		} else {
			out = utf16.AppendRune(out, r)
		}
		text = text[n:]
	}
	return out
}

// appendCanonicalString appends the canonical form of the string whose unquoted content
// is raw. Without escapes it is unchanged.
func appendCanonicalString(dst, raw []byte) []byte {
	dst = append(dst, '"')
	for {
		k := bytes.IndexByte(raw, '\\')
		if k < 0 {
			return append(append(dst, raw...), '"')
		}
		dst = append(dst, raw[:k]...)
		r, n := wirejson.DecodeEscape(raw[k:])
		dst = wirejson.AppendStringRune(dst, r)
		raw = raw[k+n:]
	}
}

// appendCanonicalNumber appends the canonical form of a number.
func appendCanonicalNumber(dst, text []byte) []byte {
	if len(text) <= 15 && text[0] != '-' && !bytes.ContainsAny(text, ".eE") {
		return append(dst, text...)
	}
	f, err := strconv.ParseFloat(unsafe.String(&text[0], len(text)), 64)
	start := len(dst)
	if err == nil {
		dst = appendECMAScriptNumber(dst, f)
	}
	if err != nil || !isSameNumber(text, dst[start:]) {
		return append(dst[:start], text...)
	}
	return dst
}

// appendECMAScriptNumber appends a float as ECMAScript's Number::toString writes it.
func appendECMAScriptNumber(dst []byte, f float64) []byte {
	if f == 0 {
		if math.Signbit(f) { // ECMAScript writes -0 as 0, which is another number
			dst = append(dst, '-')
		}
		return append(dst, '0')
	}
	if abs := max(f, -f); abs >= 1e-6 && abs < 1e21 {
		return strconv.AppendFloat(dst, f, 'f', -1, 64)
	}
	dst = strconv.AppendFloat(dst, f, 'e', -1, 64)
	if n := len(dst); dst[n-2] == '0' && (dst[n-3] == '-' || dst[n-3] == '+') { // removes the zero: e-07 becomes e-7
		dst = append(dst[:n-2], dst[n-1])
	}
	return dst
}

// isSameNumber reports whether two numbers are exactly equal.
func isSameNumber(a, b []byte) bool {
	x, xok := parseDecimal(a)
	y, yok := parseDecimal(b)
	if len(x.digits) == 0 || len(y.digits) == 0 {
		return len(x.digits) == len(y.digits)
	}
	return xok && yok && x.negative == y.negative && x.exponent == y.exponent && bytes.Equal(x.digits, y.digits)
}

// decimal is 0.digits × 10^exponent; digits neither begin nor end with a zero.
type decimal struct {
	negative bool
	digits   []byte
	exponent int
}

// parseDecimal parses a number; ok is false when its exponent is out of range.
func parseDecimal(text []byte) (d decimal, ok bool) {
	if text[0] == '-' {
		d.negative = true
		text = text[1:]
	}
	ok = true
	if e := bytes.IndexAny(text, "eE"); e >= 0 {
		n, err := strconv.Atoi(string(text[e+1:]))
		ok = err == nil && -1<<30 < n && n < 1<<30
		d.exponent = n
		text = text[:e]
	}
	whole, fraction, _ := bytes.Cut(text, []byte{'.'})
	d.exponent += len(whole)
	digits := append(append(make([]byte, 0, len(text)), whole...), fraction...)
	significant := bytes.TrimLeft(digits, "0")
	d.exponent -= len(digits) - len(significant)
	d.digits = bytes.TrimRight(significant, "0")
	return d, ok
}
