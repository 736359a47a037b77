package jsonrpc

import (
	"bytes"
	"encoding/json"
	"errors"

	"mcpproxy/internal/strictjson"
)

// SetMember gives a copy of an object in which the top-level member name has
// the given value: in its place when the object has it (in all of them, should
// a careless sender have repeated it), else as the last one. All other bytes
// are kept. An empty obj is {}; what is not an object is given back as it is.
func SetMember(obj json.RawMessage, name string, value json.RawMessage) json.RawMessage {
	if len(obj) == 0 {
		obj = json.RawMessage("{}")
	}
	if value == nil {
		value = json.RawMessage("null")
	}
	out := make([]byte, 0, len(obj)+len(value)+len(name)+4)
	w := walker{data: obj}
	copied, last := 0, -1
	for w.next() {
		last = w.to
		if string(w.name()) == name {
			out = append(append(out, obj[copied:w.from]...), value...)
			copied = w.to
		}
	}
	if w.err != nil {
		return obj
	}
	if copied == 0 {
		if last < 0 {
			last = bytes.IndexByte(obj, '{') + 1
			out = append(out, obj[:last]...)
		} else {
			out = append(append(out, obj[:last]...), ',')
		}
		out = append(append(appendString(out, name), ':'), value...)
		copied = last
	}
	return append(out, obj[copied:]...)
}

// DropMember gives an object without the top-level member name; obj itself when
// it has none, or is no object.
func DropMember(obj json.RawMessage, name string) json.RawMessage {
	if !MayName(obj, name) {
		return obj
	}
	out, dropped := []byte{'{'}, false
	w := walker{data: obj}
	for w.next() {
		if string(w.name()) == name {
			dropped = true
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, obj[w.nameAt:w.to]...)
	}
	if w.err != nil || !dropped {
		return obj
	}
	return append(out, '}')
}

// MayName says, faster than any look for it, whether a name can be in a text at
// all: false is certain. A name may be written with escapes.
func MayName(text []byte, name string) bool {
	return bytes.Contains(text, []byte(name)) || bytes.IndexByte(text, '\\') >= 0
}

var errNotObject = errors.New("the message is not an object")

// walker goes once through the members of an object, checking the grammar of
// the whole text on the way.
type walker struct {
	data           []byte
	i              int // behind the value, or 0 before the first one
	nameAt, nameTo int // the name with its quotes
	from, to       int // the value
	err            error
}

// next goes to the next member. It gives false at the end and on an error.
func (w *walker) next() bool {
	d := w.data
	i := space(d, w.i)
	switch {
	case w.to == 0 && at(d, i) == '{':
		if i = space(d, i+1); at(d, i) == '}' {
			return w.finish(i)
		}
	case w.to == 0:
		if _, w.err = strictjson.End(d[i:], maxDepth); w.err == nil {
			w.err = errNotObject
		}
		return false
	case at(d, i) == '}':
		return w.finish(i)
	case at(d, i) == ',':
		i = space(d, i+1)
	default:
		return w.fail(i, "expected a comma or the end of the object")
	}
	if at(d, i) != '"' {
		return w.fail(i, "expected a member name in double quotes")
	}
	if w.nameAt, w.nameTo = w.value(i); w.err != nil {
		return false
	}
	if i = space(d, w.nameTo); at(d, i) != ':' {
		return w.fail(i, "expected a colon after the member name")
	}
	w.from, w.to = w.value(space(d, i+1))
	w.i = w.to
	return w.err == nil
}

// value gives where the value at i begins and ends.
func (w *walker) value(i int) (from, to int) {
	n, err := strictjson.End(w.data[i:], maxDepth)
	if e, ok := errors.AsType[*strictjson.Error](err); ok {
		e.Offset += i
		w.err = e
	}
	return i, i + n
}

func (w *walker) finish(brace int) bool {
	if i := space(w.data, brace+1); i < len(w.data) {
		return w.fail(i, "there is something after the value")
	}
	return false
}

func (w *walker) fail(i int, reason string) bool {
	w.err = &strictjson.Error{Offset: i, Reason: reason}
	return false
}

// name gives the name of the member, unescaped.
func (w *walker) name() []byte {
	raw := w.data[w.nameAt:w.nameTo]
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1]
	}
	name, _ := strictjson.String(raw)
	return []byte(name)
}

// at gives the byte at i, 0 behind the end.
func at(d []byte, i int) byte {
	if i < len(d) {
		return d[i]
	}
	return 0
}

// space gives the first offset from i on that is not white space.
func space(d []byte, i int) int {
	for i < len(d) && (d[i] == ' ' || d[i] == '\n' || d[i] == '\r' || d[i] == '\t') {
		i++
	}
	return i
}
