package strictjson

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"
)

// The readers below trust that the grammar was checked, by Check or End, and
// do not check it again. With other text they give nonsense, but never panic.

// Members calls fn for every member of a checked object, in order, until fn
// fails. The name is unescaped; the value aliases obj, without the white space
// around it. When obj is not an object the error is an *Error, else fn's own.
func Members(obj []byte, fn func(name, value []byte) error) error {
	w, ok := walkObject(obj)
	if !ok {
		return &Error{Offset: 0, Reason: "expected an object"}
	}
	for w.next() {
		name := w.name
		if bytes.IndexByte(name, '\\') >= 0 {
			name = unescape(nil, name)
		}
		if err := fn(name, w.value); err != nil {
			return err
		}
	}
	return nil
}

// Elements calls fn for every element of a checked array, as Members does.
func Elements(arr []byte, fn func(value []byte) error) error {
	i := skipSpace(arr, 0)
	if i >= len(arr) || arr[i] != '[' {
		return &Error{Offset: 0, Reason: "expected an array"}
	}
	for {
		i = skipSpace(arr, i+1)
		if i >= len(arr) || arr[i] == ']' {
			return nil
		}
		end := skipValue(arr, i)
		if err := fn(arr[i:end]); err != nil {
			return err
		}
		i = skipSpace(arr, end)
		if i >= len(arr) || arr[i] != ',' {
			return nil
		}
	}
}

// Find gives the value of a member of a checked object, nil when there is none
// or obj is no object. It allocates nothing unless a name is long and escaped.
func Find(obj []byte, name string) []byte {
	w, ok := walkObject(obj)
	if !ok {
		return nil
	}
	var buf [64]byte
	for w.next() {
		if string(w.name) == name {
			return w.value
		}
		if bytes.IndexByte(w.name, '\\') >= 0 && string(unescape(buf[:0], w.name)) == name {
			return w.value
		}
	}
	return nil
}

// Kind says what a value is by its first byte: one of { [ " t f n, or 0 (the
// digit) for a number. It is 0 (the number) when the value is none.
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

// String decodes a string; ok is false when value is none.
func String(value []byte) (text string, ok bool) {
	if len(value) < 2 || value[0] != '"' {
		return "", false
	}
	s := scanner{data: value}
	if s.str(1) != len(value) {
		return "", false
	}
	raw := value[1 : len(value)-1]
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw), true
	}
	var buf [256]byte
	return string(unescape(buf[:0], raw)), true
}

// Bool decodes true and false; ok is false when value is neither.
func Bool(value []byte) (v, ok bool) {
	v = string(value) == "true"
	return v, v || string(value) == "false"
}

// Int decodes a number that is written as an integer and fits; else ok is
// false. 1.0 and 1e3 are not written so.
func Int(value []byte) (v int64, ok bool) {
	if Kind(value) != '0' {
		return 0, false
	}
	s := scanner{data: value}
	if s.number(0) != len(value) {
		return 0, false
	}
	v, err := strconv.ParseInt(unsafe.String(&value[0], len(value)), 10, 64)
	if err != nil {
		return 0, false
	}
	return v, true
}

// walker goes through the members of a checked object.
type walker struct {
	data        []byte
	i           int // at the brace or comma before the next member
	name, value []byte
}

func walkObject(obj []byte) (walker, bool) {
	i := skipSpace(obj, 0)
	return walker{data: obj, i: i}, i < len(obj) && obj[i] == '{'
}

// next goes to the next member and sets its raw name and its value.
func (w *walker) next() bool {
	d := w.data
	if w.i >= len(d) || d[w.i] != '{' && d[w.i] != ',' {
		return false
	}
	start := skipSpace(d, w.i+1)
	if start >= len(d) || d[start] != '"' {
		return false
	}
	end := skipString(d, start+1)
	colon := skipSpace(d, end)
	from := skipSpace(d, colon+1)
	if from >= len(d) || d[colon] != ':' {
		return false
	}
	to := skipValue(d, from)
	w.name, w.value, w.i = d[start+1:end-1], d[from:to:to], skipSpace(d, to)
	return true
}

// skipValue gives the offset behind the value at i.
func skipValue(d []byte, i int) int {
	switch d[i] {
	case '"':
		return skipString(d, i+1)
	case '{', '[':
		return skipContainer(d, i)
	}
	for i < len(d) && d[i] > ' ' && d[i] != ',' && d[i] != ']' && d[i] != '}' {
		i++
	}
	return i
}

func skipContainer(d []byte, i int) int {
	open := 0
	for i < len(d) {
		c := d[i]
		i++
		switch c | 0x20 { // which takes [ to { and ] to }
		case '"':
			i = skipString(d, i)
		case '{':
			open++
		case '}':
			if open--; open == 0 {
				return i
			}
		}
	}
	return len(d)
}

// skipString gives the offset behind the closing quote of a string whose
// opening quote is just before i.
func skipString(d []byte, i int) int {
	for i+8 <= len(d) {
		x := binary.LittleEndian.Uint64(d[i:])
		i += 8
		for m := special(x, 0); m != 0; {
			k := bits.TrailingZeros64(m) &^ 7
			switch byte(x >> k) {
			case '"':
				return i - 8 + k>>3 + 1
			case '\\':
				if k == 56 {
					i++
				}
				m &^= 0x8080 << k
			default:
				m &^= 0x80 << k
			}
		}
	}
	for ; i < len(d); i++ {
		switch d[i] {
		case '"':
			return i + 1
		case '\\':
			i++
		}
	}
	return len(d)
}

// unescape appends what a raw string stands for. A lone surrogate becomes
// U+FFFD; what is no escape sequence stays.
func unescape(dst, raw []byte) []byte {
	for {
		k := bytes.IndexByte(raw, '\\')
		if k < 0 || k+1 >= len(raw) {
			return append(dst, raw...)
		}
		dst = append(dst, raw[:k]...)
		c := raw[k+1]
		raw = raw[k+2:]
		switch c {
		case 'b':
			c = '\b'
		case 'f':
			c = '\f'
		case 'n':
			c = '\n'
		case 'r':
			c = '\r'
		case 't':
			c = '\t'
		case 'u':
			var r rune
			if r, raw = unescapeRune(raw); r >= 0 {
				dst = utf8.AppendRune(dst, r)
				continue
			}
		}
		dst = append(dst, c)
	}
}

// unescapeRune reads what follows \u, with a second escape for a pair.
func unescapeRune(raw []byte) (rune, []byte) {
	r := hex4(raw, 0)
	if r < 0 {
		return r, raw
	}
	raw = raw[4:]
	if utf16.IsSurrogate(r) && len(raw) >= 6 && raw[0] == '\\' && raw[1] == 'u' {
		if pair := utf16.DecodeRune(r, hex4(raw, 2)); pair != utf8.RuneError {
			return pair, raw[6:]
		}
	}
	return r, raw
}
