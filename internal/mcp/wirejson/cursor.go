package wirejson

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// CarriedDepth bounds the nesting of what is carried and not judged. It is far
// beyond any real result, and below what makes recursive parsers fail.
const CarriedDepth = 1000

// Cursor goes through Text, in the way of
//
//	for end := c.Open('{'); c.More(end); {
//		name := c.Name() // in an object
//		value := c.Value()
//	}
//
// with the containers inside taken as values or opened in their turn. Without a
// Depth it trusts that the grammar was checked; of other text it may take for a
// value what is none. With a Depth it checks the values that it steps over: the
// grammar and how deep they are nested, and nothing else, not UTF-8,
// surrogates, names or ranges. Where it cannot go on it is lost: there is no
// more, values are nil, and Finish says why. It never panics.
type Cursor struct {
	Text  []byte
	Depth int
	i     int
	err   *Error
}

// At is the offset that the cursor has come to.
func (c *Cursor) At() int { return c.i }

// Peek skips white space and returns the next byte, 0 at the end.
func (c *Cursor) Peek() byte {
	if c.i = skipSpace(c.Text, c.i); c.i < len(c.Text) {
		return c.Text[c.i]
	}
	return 0
}

// Open steps into the object or array that comes next, if it begins with that
// bracket, and returns the one that ends it, else 0.
func (c *Cursor) Open(bracket byte) (end byte) {
	if c.Peek() != bracket {
		return 0
	}
	c.i++
	return bracket + 2 // } and ] are two after { and [
}

// More steps to the next member or element of the container that end ends. When
// there is none it steps over end and returns false.
func (c *Cursor) More(end byte) bool {
	if c.err != nil || end == 0 {
		return false
	}
	first := c.Text[c.i-1] == end-2 // no value ends so
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
		return c.lost("expected a comma or the end of the array")
	}
	return c.lost("expected a comma or the end of the object")
}

// Name steps over the name of a member and the colon behind it. It returns what
// is written between the quotes.
func (c *Cursor) Name() []byte {
	if c.Peek() != '"' {
		c.lost("expected a member name in double quotes")
	}
	var name []byte
	if c.Depth > 0 || c.err != nil {
		name = c.value()
	} else if end := skipString(c.Text, c.i+1); end > 0 {
		name, c.i = c.Text[c.i:end:end], end
	} else {
		c.lost("expected a value")
	}
	if len(name) == 0 {
		return nil
	}
	if c.Peek() == ':' {
		c.i++
	} else {
		c.lost("expected a colon after the member name")
	}
	return name[1 : len(name)-1]
}

// Value steps over a value and returns it.
func (c *Cursor) Value() []byte {
	c.Peek()
	return c.value()
}

func (c *Cursor) value() []byte {
	if c.err != nil {
		return nil
	}
	start, end := c.i, failed
	if c.Depth > 0 {
		s := scanner{data: c.Text, depth: c.Depth}
		if end = s.skip(start); end < 0 {
			c.err = s.error()
			return nil
		}
	} else if end = skipValue(c.Text, start); end < 0 {
		c.lost("expected a value")
		return nil
	}
	c.i = end
	return c.Text[start:end:end]
}

// Finish returns where and why the cursor was lost, or that there is something
// after the value that it has stepped over. The error is an *Error.
func (c *Cursor) Finish() error {
	if c.Peek(); c.i < len(c.Text) {
		c.lost("there is something after the value")
	}
	if c.err == nil {
		return nil
	}
	return c.err
}

func (c *Cursor) lost(reason string) bool {
	if c.err == nil {
		c.err = &Error{Offset: c.i, Reason: reason}
	}
	return false
}

// The functions below return the offset behind what stands at i, or failed.

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
	for i < len(d) && !delimiter(d[i]) {
		i++
	}
	if i == start {
		return failed
	}
	return i
}

// delimiter reports whether a byte ends a number, true, false or null.
func delimiter(b byte) bool {
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
		case b|0x20 == '{': // which takes [ to {
			open++
		case b|0x20 == '}':
			if open--; open == 0 {
				return i
			}
		}
	}
	return failed
}

// skipString is for a string whose opening quote is just before i. It looks at
// eight bytes at a time. Where nothing was special for a while it leaps to the
// next quote, which ends the string unless an odd number of backslashes is
// before it.
func skipString(d []byte, i int) int {
	for clear := 0; i+8 <= len(d); {
		x := binary.LittleEndian.Uint64(d[i:])
		i += 8
		m := special(x, 0)
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
