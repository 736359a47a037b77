package wirejson

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// RelayDepth limits the nesting of JSON that is forwarded without validation. It is far beyond any real
// result, and below the depth at which recursive parsers fail.
const RelayDepth = 1000

// Cursor walks over Text like this:
//
//	for end := c.Enter('{'); c.More(end); {
//		name := c.ReadName() // in an object
//		value := c.ReadValue()
//	}
//
// Nested containers are read as values or entered one by one. Without Depth, it expects checked JSON and may misread
// other text. With Depth, it checks the grammar and the nesting of the values that it skips, but not UTF-8, surrogates,
// names or ranges. After an error there are no more members, values are nil, and Finish returns the error. It never
// panics.
type Cursor struct {
	Text  []byte
	Depth int
	i     int
	err   *Error
}

// Offset returns the current offset.
func (c *Cursor) Offset() int { return c.i }

// Peek skips white space and returns the next byte, or 0 at the end.
func (c *Cursor) Peek() byte {
	if c.i = skipSpace(c.Text, c.i); c.i < len(c.Text) {
		return c.Text[c.i]
	}
	return 0
}

// Enter enters the next value if it starts with bracket, and returns the closing bracket. Otherwise it returns 0.
func (c *Cursor) Enter(bracket byte) (end byte) {
	if c.Peek() != bracket {
		return 0
	}
	c.i++
	return bracket + 2 // the codes of } and ] are 2 above { and [
}

// More moves to the next member or element of the container that end closes. After the last one it skips
// end and returns false.
func (c *Cursor) More(end byte) bool {
	if c.err != nil || end == 0 {
		return false
	}
	first := c.Text[c.i-1] == end-2 // no value ends with this byte
	switch b := c.Peek(); {
	case b == end:
		c.i++
		return false
	case first:
		return true
	case b == ',':
		c.i++
		return true
	case end == ']':
		return c.setError("expected a comma or the end of the array")
	}
	return c.setError("expected a comma or the end of the object")
}

// ReadName skips the name of a member and the colon, and returns the raw text between the quotes.
func (c *Cursor) ReadName() []byte {
	if c.Peek() != '"' {
		c.setError("expected a member name in double quotes")
	}
	var name []byte
	if c.Depth > 0 || c.err != nil {
		name = c.readValue()
	} else if end := skipString(c.Text, c.i+1); end > 0 {
		name, c.i = c.Text[c.i:end:end], end
	} else {
		c.setError("expected a value")
	}
	if len(name) == 0 {
		return nil
	}
	if c.Peek() == ':' {
		c.i++
	} else {
		c.setError("expected a colon after the member name")
	}
	return name[1 : len(name)-1]
}

// ReadValue skips a value and returns it.
func (c *Cursor) ReadValue() []byte {
	c.Peek()
	return c.readValue()
}

// readValue is like ReadValue, but does not skip white space first.
func (c *Cursor) readValue() []byte {
	if c.err != nil {
		return nil
	}
	start, end := c.i, failed
	if c.Depth > 0 {
		s := scanner{data: c.Text, depth: c.Depth}
		if end = s.skipValue(start); end < 0 {
			c.err = s.toError()
			return nil
		}
	} else if end = skipValue(c.Text, start); end < 0 {
		c.setError("expected a value")
		return nil
	}
	c.i = end
	return c.Text[start:end:end]
}

// Finish returns the first error as an *Error, or an error if text follows the value.
func (c *Cursor) Finish() error {
	if c.Peek(); c.i < len(c.Text) {
		c.setError("there is something after the value")
	}
	if c.err == nil {
		return nil
	}
	return c.err
}

func (c *Cursor) setError(reason string) bool {
	if c.err == nil {
		c.err = &Error{Offset: c.i, Reason: reason}
	}
	return false
}

// The skip functions return the offset after the value at i, or failed.

func skipValue(d []byte, i int) int {
	if i < len(d) {
		switch d[i] {
		case '"':
			return skipString(d, i+1)
		case '{', '[':
			return skipContainer(d, i)
		}
	}
	start := i
	for i < len(d) && !endsScalar(d[i]) {
		i++
	}
	if i == start {
		return failed
	}
	return i
}

// endsScalar reports whether a byte ends a number, true, false or null.
func endsScalar(b byte) bool {
	switch b {
	case ',', '}', ']', ':', '"', '{', '[', ' ', '\n', '\t', '\r':
		return true
	}
	return false
}

func skipContainer(d []byte, i int) int {
	open := 0
	for i < len(d) {
		b := d[i]
		i++
		switch {
		case b == '"':
			if i = skipString(d, i); i < 0 {
				return failed
			}
		case b < '[':
		case b|0x20 == '{': // also true for [
			open++
		case b|0x20 == '}':
			if open--; open == 0 {
				return i
			}
		}
	}
	return failed
}

// skipString skips a string. i is the offset after the opening quote. It reads eight bytes at a time. After a while
// without special bytes, it jumps to the next quote. That quote ends the string, unless an odd number of backslashes
// precedes it.
func skipString(d []byte, i int) int {
	for clear := 0; i+8 <= len(d); {
		x := binary.LittleEndian.Uint64(d[i:])
		i += 8
		m := markSpecialBytes(x, 0)
		if m == 0 {
			if clear++; clear < 8 {
				continue
			}
			n := bytes.IndexByte(d[i:], '"')
			if n < 0 {
				return failed
			}
			slashes := i + n
			for slashes > i && d[slashes-1] == '\\' {
				slashes--
			}
			if i += n + 1; (i-slashes)%2 == 1 {
				return i
			}
		}
		clear = 0
		for m != 0 {
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
	return failed
}
