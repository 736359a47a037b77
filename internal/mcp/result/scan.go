package result

import (
	"bytes"

	"mcpproxy/internal/mcp/wirejson"
)

// The functions of this file are fast and expect JSON. They return wrong values for other text. Callers validate their
// output.

// jsonEntry is a member of an object, or an element of an array, which has no name. It aliases the text.
type jsonEntry struct{ name, value []byte }

// toStep returns the step to the i-th entry.
func (e jsonEntry) toStep(i int) pathStep {
	if e.name == nil {
		return pathStep{kind: element, from: i}
	}
	return pathStep{name: string(wirejson.Unescape(e.name))}
}

// eachEntry calls fn for the entries of the container v until fn returns false. It returns false if v is not a
// container.
func eachEntry(v []byte, fn func(i int, e jsonEntry) bool) bool {
	c := wirejson.Cursor{Text: v}
	end := c.Enter('{')
	if end == 0 {
		end = c.Enter('[')
	}
	for i := 0; c.More(end); i++ {
		var e jsonEntry
		if end == '}' {
			e.name = c.ReadName()
		}
		if e.value = c.ReadValue(); e.value != nil && !fn(i, e) {
			return true
		}
	}
	return end != 0 && c.Finish() == nil
}

// trimSpace removes surrounding white space.
func trimSpace(text []byte) []byte {
	return bytes.Trim(text, " \n\t\r")
}

// onlyValue returns the only value of the text without white space, or nil if there is not exactly one value.
func onlyValue(text []byte) []byte {
	c := wirejson.Cursor{Text: text}
	value := c.ReadValue()
	if c.Finish() != nil {
		return nil
	}
	return value
}

// isPageableJSON reports whether the text is JSON that can be paged.
func isPageableJSON(text []byte) bool {
	c := wirejson.Cursor{Text: text, Depth: wirejson.RelayDepth}
	return c.ReadValue() != nil && c.Finish() == nil
}
