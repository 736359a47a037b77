package tool

import "mcpproxy/internal/rawjson"

// eachMember calls fn for the members of an object whose grammar is checked.
// It returns false when value is no object.
func eachMember(value []byte, fn func(name string, value []byte)) bool {
	c := rawjson.Cursor{Text: value}
	end := c.Open('{')
	for c.More(end) {
		name := string(rawjson.Unescape(c.Name()))
		fn(name, c.Value())
	}
	return end != 0
}

// text decodes a string; what is none is "".
func text(value []byte) string {
	if value[0] != '"' {
		return ""
	}
	return string(rawjson.Unescape(value[1 : len(value)-1]))
}
