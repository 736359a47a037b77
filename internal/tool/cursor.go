package tool

import "bytes"

// cursor goes through JSON whose grammar json.Valid has checked.
type cursor struct {
	in []byte
	i  int
}

// peek skips white space and gives the next byte.
func (c *cursor) peek() byte {
	for c.in[c.i] == ' ' || c.in[c.i] == '\n' || c.in[c.i] == '\t' || c.in[c.i] == '\r' {
		c.i++
	}
	return c.in[c.i]
}

// more steps over the opening bracket or the comma before an element or a
// member. At the end it steps over the closing bracket and gives false.
func (c *cursor) more() bool {
	switch c.peek() {
	case '[', '{':
		c.i++
		if b := c.peek(); b != ']' && b != '}' {
			return true
		}
	case ',':
		c.i++
		c.peek()
		return true
	}
	c.i++
	return false
}

// colon steps over the colon after a name.
func (c *cursor) colon() {
	c.peek()
	c.i++
}

// str steps over a string and gives what is between its quotes.
func (c *cursor) str() []byte {
	start := c.i + 1
	for i := start; ; {
		i += bytes.IndexByte(c.in[i:], '"')
		back := i
		for c.in[back-1] == '\\' {
			back--
		}
		if i++; (i-back)%2 == 1 { // an even number of backslashes
			c.i = i
			return c.in[start : i-1]
		}
	}
}

// word steps over a number, true, false or null and gives it.
func (c *cursor) word() []byte {
	start := c.i
	for c.i < len(c.in) && c.in[c.i] > ' ' && c.in[c.i] != ',' && c.in[c.i] != ']' && c.in[c.i] != '}' {
		c.i++
	}
	return c.in[start:c.i]
}

// value steps over a value and gives it.
func (c *cursor) value() []byte {
	first := c.peek()
	start := c.i
	switch first {
	case '"':
		c.str()
	case '{', '[':
		c.container()
	default:
		c.word()
	}
	return c.in[start:c.i:c.i]
}

func (c *cursor) container() {
	for open := 0; ; {
		switch c.in[c.i] {
		case '"':
			c.str()
			continue
		case '{', '[':
			open++
		case '}', ']':
			open--
		}
		if c.i++; open == 0 {
			return
		}
	}
}
