package result

import (
	"bytes"

	"mcpproxy/internal/mcp/wirejson"
)

// The functions of this file are fast and expect JSON; other text gives wrong values. Callers validate
// what they write.

// entry is a member of an object or an element of an array, which has no name. It aliases the text.
type entry struct{ name, value []byte }

// step returns the step to the i-th entry.
func (e entry) step(i int) step {
	if e.name == nil {
		return step{kind: element, from: i}
	}
	return step{name: string(wirejson.Unescape(e.name))}
}

// each calls fn for the entries of the container v until fn returns false. It returns false if v is no
// container.
func each(v []byte, fn func(i int, e entry) bool) bool {
	c := wirejson.Cursor{Text: v}
	end := c.Open('{')
	if end == 0 {
		end = c.Open('[')
	}
	for i := 0; c.More(end); i++ {
		var e entry
		if end == '}' {
			e.name = c.Name()
		}
		if e.value = c.Value(); e.value != nil && !fn(i, e) {
			return true
		}
	}
	return end != 0 && c.Finish() == nil
}

// trim removes surrounding white space.
func trim(text []byte) []byte {
	return bytes.Trim(text, " \n\t\r")
}

// whole returns the only value of the text without white space; nil if it is not exactly one value.
func whole(text []byte) []byte {
	c := wirejson.Cursor{Text: text}
	value := c.Value()
	if c.Finish() != nil {
		return nil
	}
	return value
}

// valid reports whether the text is JSON that can be paged.
func valid(text []byte) bool {
	c := wirejson.Cursor{Text: text, Depth: wirejson.RelayDepth}
	return c.Value() != nil && c.Finish() == nil
}
