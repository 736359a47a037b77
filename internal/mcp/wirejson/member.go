package wirejson

import (
	"bytes"
	"encoding/json"
)

// SetMember returns a copy of an object in which the top-level member name has
// the given value: in its place when the object has it (in all of them, should
// a careless sender have repeated it), else as the last one. All other bytes
// are kept. An empty obj is {}; what is not an object is returned as it is.
func SetMember(obj json.RawMessage, name string, value json.RawMessage) json.RawMessage {
	if len(obj) == 0 {
		obj = json.RawMessage("{}")
	}
	if value == nil {
		value = json.RawMessage("null")
	}
	out := make([]byte, 0, len(obj)+len(value)+len(name)+4)
	c := Cursor{Text: obj, Depth: CarriedDepth}
	copied, last := 0, -1
	end := c.Open('{')
	for c.More(end) {
		own := string(Unescape(c.Name())) == name
		old := c.Value()
		if last = c.At(); own {
			out = append(append(out, obj[copied:last-len(old)]...), value...)
			copied = last
		}
	}
	if end == 0 || c.Finish() != nil {
		return obj
	}
	if copied == 0 {
		if last < 0 {
			last = bytes.IndexByte(obj, '{') + 1
			out = append(out, obj[:last]...)
		} else {
			out = append(append(out, obj[:last]...), ',')
		}
		out = append(append(AppendString(out, name), ':'), value...)
		copied = last
	}
	return append(out, obj[copied:]...)
}

// DropMember returns an object without the top-level member name; obj itself when
// it has none, or is no object.
func DropMember(obj json.RawMessage, name string) json.RawMessage {
	if !MayName(obj, name) {
		return obj
	}
	out, dropped := []byte{'{'}, false
	c := Cursor{Text: obj, Depth: CarriedDepth}
	end := c.Open('{')
	for c.More(end) {
		c.Peek()
		from := c.At()
		own := string(Unescape(c.Name())) == name
		if c.Value(); own {
			dropped = true
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, obj[from:c.At()]...)
	}
	if end == 0 || c.Finish() != nil || !dropped {
		return obj
	}
	return append(out, '}')
}

// AddElement returns a copy of an array with an element more, the last one. All
// other bytes are kept. What is not an array is returned as it is.
func AddElement(array, element json.RawMessage) json.RawMessage {
	end := bytes.LastIndexByte(array, ']')
	if Kind(array) != '[' || end < 0 {
		return array
	}
	out := append(make([]byte, 0, len(array)+len(element)+1), array[:end]...)
	if kept := bytes.TrimRight(out, " \t\r\n"); kept[len(kept)-1] != '[' {
		out = append(out, ',')
	}
	return append(append(out, element...), array[end:]...)
}

// Keep returns an array with the elements that keep reports, and how many it has
// left out; with none, the array as it is.
func Keep(array json.RawMessage, keep func(i int, value []byte) bool) (kept json.RawMessage, left int) {
	kept = append(kept, '[')
	i := 0
	_ = Elements(array, func(value []byte) error {
		if keep(i, value) {
			if len(kept) > 1 {
				kept = append(kept, ',')
			}
			kept = append(kept, value...)
		} else {
			left++
		}
		i++
		return nil
	})
	if left == 0 {
		return array, 0
	}
	return append(kept, ']'), left
}

// MayName reports, faster than any look for it, whether a name can be in a text at
// all: false is certain. A name may be written with escapes.
func MayName(text []byte, name string) bool {
	return bytes.Contains(text, []byte(name)) || bytes.IndexByte(text, '\\') >= 0
}
