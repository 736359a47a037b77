package wirejson

import (
	"bytes"
	"encoding/json"
)

// SetMember returns a copy of an object in which the top-level member name has the value. It replaces every occurrence
// of the member, or appends the member if there is none. All other bytes are kept. An empty obj counts as {}. A value
// that is not an object is returned unchanged.
func SetMember(obj json.RawMessage, name string, value json.RawMessage) json.RawMessage {
	if len(obj) == 0 {
		obj = json.RawMessage("{}")
	}
	if value == nil {
		value = json.RawMessage("null")
	}
	out := make([]byte, 0, len(obj)+len(value)+len(name)+4)
	c := Cursor{Text: obj, Depth: RelayDepth}
	copied, last := 0, -1
	end := c.Enter('{')
	for c.More(end) {
		own := string(Unescape(c.ReadName())) == name
		old := c.ReadValue()
		if last = c.Offset(); own {
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

// DropMember returns an object without the top-level member name, or obj itself if it is not an object or has
// no such member.
func DropMember(obj json.RawMessage, name string) json.RawMessage {
	if !MayContain(obj, name) {
		return obj
	}
	out, dropped := []byte{'{'}, false
	c := Cursor{Text: obj, Depth: RelayDepth}
	end := c.Enter('{')
	for c.More(end) {
		c.Peek()
		from := c.Offset()
		own := string(Unescape(c.ReadName())) == name
		if c.ReadValue(); own {
			dropped = true
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, obj[from:c.Offset()]...)
	}
	if end == 0 || c.Finish() != nil || !dropped {
		return obj
	}
	return append(out, '}')
}

// AddElement returns a copy of an array with one more element. All other bytes are kept. A value that is not an array
// is returned unchanged.
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

// FilterElements returns an array of the elements for which keep returns true, and the number of removed ones. If none
// is removed, it returns the array itself.
func FilterElements(array json.RawMessage, keep func(i int, value []byte) bool) (kept json.RawMessage, left int) {
	kept = append(kept, '[')
	i := 0
	_ = EachElement(array, func(value []byte) error {
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

// MayContain reports whether a text may contain a member name. It is faster than a search. Only false is certain.
func MayContain(text []byte, name string) bool {
	return bytes.Contains(text, []byte(name)) || bytes.IndexByte(text, '\\') >= 0
}
