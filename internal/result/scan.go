package result

import (
	"bytes"

	"mcpproxy/internal/rawjson"
)

// The functions here trust that the text is JSON: they are made for speed, on
// results of many megabytes, and on texts in them that nobody parsed before.
// What they take for a value may be none. Whoever writes what they found checks
// it.

// member is a member of an object, or an element of an array, which has no
// name. Both alias the text.
type member struct{ name, value []byte }

// each calls fn for the members or elements of the container that v is, until
// fn returns false. It returns false when v is no such text.
func each(v []byte, fn func(m member) bool) bool {
	c := rawjson.Cursor{Text: v}
	end := c.Open('{')
	if end == 0 {
		end = c.Open('[')
	}
	for c.More(end) {
		var m member
		if end == '}' {
			m.name = c.Name()
		}
		if m.value = c.Value(); m.value != nil && !fn(m) {
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
	c := rawjson.Cursor{Text: text}
	value := c.Value()
	if c.Finish() != nil {
		return nil
	}
	return value
}
