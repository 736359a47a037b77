package wirejson

import (
	"bytes"
	"strconv"
	"unsafe"
)

// The functions below expect checked JSON (Check, or a Cursor with Depth). With other text they return
// wrong values but never panic.

// EachMember calls fn for every member of an object, in order, until fn fails. The name is unescaped. The value aliases
// obj. If obj is not an object, the error is an *Error.
func EachMember(obj []byte, fn func(name, value []byte) error) error {
	i := firstMemberOffset(obj)
	if i < 0 {
		return &Error{Offset: 0, Reason: "expected an object"}
	}
	for {
		var name, value []byte
		if name, value, i = nextMember(obj, i); value == nil {
			return nil
		}
		if err := fn(Unescape(name), value); err != nil {
			return err
		}
	}
}

// firstMemberOffset returns the offset of the first member of an object, or failed.
func firstMemberOffset(obj []byte) int {
	if i := skipSpace(obj, 0); i < len(obj) && obj[i] == '{' {
		return i + 1
	}
	return failed
}

// nextMember returns the next member of an object, and the offset after it and its comma. After the last member, the
// value is nil. It is a fast path of Cursor, for values that are read on every call.
func nextMember(d []byte, i int) (name, value []byte, next int) {
	i = skipSpace(d, i)
	if i >= len(d) || d[i] != '"' {
		return nil, nil, len(d)
	}
	end := skipString(d, i+1)
	if end < 0 {
		return nil, nil, len(d)
	}
	name = d[i+1 : end-1]
	if i = skipSpace(d, end); i >= len(d) || d[i] != ':' {
		return nil, nil, len(d)
	}
	i = skipSpace(d, i+1)
	if end = skipValue(d, i); end < 0 {
		return nil, nil, len(d)
	}
	if next = skipSpace(d, end); next < len(d) && d[next] == ',' {
		next++
	}
	return name, d[i:end:end], next
}

// EachElement calls fn for every element of an array, like EachMember.
func EachElement(arr []byte, fn func(value []byte) error) error {
	c := Cursor{Text: arr}
	if c.Peek() != '[' {
		return &Error{Offset: 0, Reason: "expected an array"}
	}
	for end := c.Enter('['); c.More(end); {
		value := c.ReadValue()
		if value == nil {
			break
		}
		if err := fn(value); err != nil {
			return err
		}
	}
	return nil
}

// Find returns the value of a member. It returns nil if the member is missing or obj is not an object. It allocates
// only for long escaped names.
func Find(obj []byte, name string) []byte {
	var buf [64]byte
	i := firstMemberOffset(obj)
	for i >= 0 {
		var raw, value []byte
		if raw, value, i = nextMember(obj, i); value == nil {
			break
		}
		if string(raw) == name || bytes.IndexByte(raw, '\\') >= 0 && string(appendUnescaped(buf[:0], raw)) == name {
			return value
		}
	}
	return nil
}

// Kind returns the kind of a value: one of { [ " t f n, or '0' for a number. It is 0 if the value is
// invalid.
func Kind(value []byte) byte {
	i := skipSpace(value, 0)
	if i >= len(value) {
		return 0
	}
	switch c := value[i]; c {
	case '{', '[', '"', 't', 'f', 'n':
		return c
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return '0'
	}
	return 0
}

// String decodes a string; ok is false for other values.
func String(value []byte) (text string, ok bool) {
	if len(value) < 2 || value[0] != '"' {
		return "", false
	}
	s := scanner{data: value}
	if s.scanString(1) != len(value) {
		return "", false
	}
	raw := value[1 : len(value)-1]
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw), true
	}
	var buf [256]byte
	return string(appendUnescaped(buf[:0], raw)), true
}

// Bool decodes true and false; ok is false for other values.
func Bool(value []byte) (v, ok bool) {
	v = string(value) == "true"
	return v, v || string(value) == "false"
}

// Int decodes a number in integer notation that fits into an int64. It rejects 1.0 and 1e3.
func Int(value []byte) (v int64, ok bool) {
	if Kind(value) != '0' {
		return 0, false
	}
	s := scanner{data: value}
	if s.scanNumber(0) != len(value) {
		return 0, false
	}
	v, err := strconv.ParseInt(unsafe.String(&value[0], len(value)), 10, 64)
	if err != nil {
		return 0, false
	}
	return v, true
}

// ExceedsFloat64 reports whether a JSON text has a number that is too large for a 64-bit float. Some parsers reject a
// message with such a number.
func ExceedsFloat64(text []byte) bool {
	for i := 0; i >= 0 && i < len(text); {
		switch c := text[i]; {
		case c == '"':
			i = skipString(text, i+1)
		case c == '-' || c-'0' <= 9:
			end := i + 1
			for end < len(text) && !endsScalar(text[end]) {
				end++
			}
			if exceedsFloat64(text[i:end]) {
				return true
			}
			i = end
		default:
			i++
		}
	}
	return false
}
