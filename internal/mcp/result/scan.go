package result

import (
	"bytes"

	"mcpproxy/internal/mcp/wirejson"
)

// The functions here trust that the text is JSON: they are made for speed, on
// results of many megabytes, and on texts in them that nobody parsed before.
// What they take for a value may be none. Whoever writes what they found checks
// it.

// entry is a member of an object, or an element of an array, which has no
// name. Both alias the text.
type entry struct{ name, value []byte }

// step is the step to the entry, which is the ith.
func (e entry) step(i int) step {
	if e.name == nil {
		return step{kind: element, from: i}
	}
	return step{name: string(wirejson.Unescape(e.name))}
}

// each calls fn for the members or elements of the container that v is, with
// the number of each, until fn returns false. It returns false when v is no such
// text.
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

// trim returns text without the white space around it.
func trim(text []byte) []byte {
	return bytes.Trim(text, " \n\t\r")
}

// whole returns the value that the text consists of, without white space around
// it; nil when it is not one value.
func whole(text []byte) []byte {
	c := wirejson.Cursor{Text: text}
	value := c.Value()
	if c.Finish() != nil {
		return nil
	}
	return value
}

// valid reports whether the text is JSON that can be paged through to its end.
func valid(text []byte) bool {
	c := wirejson.Cursor{Text: text, Depth: wirejson.CarriedDepth}
	return c.Value() != nil && c.Finish() == nil
}
