package schema

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// document is a parsed JSON text. Its values lie in one slice in the order of
// the text: the first child of a value follows it, and a value's size leads
// over all that is in it to the next one. So a text is parsed without an
// allocation per value, and strings and numbers stay as written.
type document struct {
	src    []byte
	values []value
}

type value struct {
	kind       byte // { [ " t f n, and 0 for a number
	escaped    bool // the string has escapes
	keyEscaped bool
	start, end int32 // the text; of a string, between the quotes
	key        int32 // of a member: where its name begins, between the quotes
	keyEnd     int32
	size       int32 // values in it, itself included
	count      int32 // members or elements
}

// parser is the state of one parse.
type parser struct {
	*document
	at       int
	maxCount int
	err      error
}

// parse reads src, which must be one JSON value within the bounds.
func (d *document) parse(src []byte, depth, count int) error {
	d.src, d.values = src, d.values[:0]
	d.grow(count)
	p := parser{document: d, maxCount: count}
	p.space()
	if !p.value(depth) {
		return p.err
	}
	if p.space(); p.at != len(src) {
		return fmt.Errorf("it goes on after the JSON value, at byte %d", p.at)
	}
	return nil
}

// grow makes room for the values of a long text at once: there are no more of
// them than commas and opening brackets.
func (d *document) grow(most int) {
	if len(d.src) < 2048 {
		return
	}
	n := 1 + bytes.Count(d.src, []byte{','}) + bytes.Count(d.src, []byte{'['}) + bytes.Count(d.src, []byte{'{'})
	d.values = slices.Grow(d.values, min(n, most)+1) // one more for checkName
}

func (p *parser) fail(what string) bool {
	if p.err == nil {
		p.err = fmt.Errorf("it is not valid JSON at byte %d: %s", p.at, what)
	}
	return false
}

func (p *parser) space() {
	for p.at < len(p.src) {
		switch p.src[p.at] {
		case ' ', '\t', '\n', '\r':
			p.at++
		default:
			return
		}
	}
}

func (p *parser) peek() byte {
	if p.at < len(p.src) {
		return p.src[p.at]
	}
	return 0
}

// value parses one value, whose first byte is next.
func (p *parser) value(depth int) bool {
	if len(p.values) >= p.maxCount {
		p.err = fmt.Errorf("it has more than %d values", p.maxCount)
		return false
	}
	i := len(p.values)
	p.values = append(p.values, value{kind: p.peek(), start: int32(p.at), size: 1})
	switch p.peek() {
	case '{', '[':
		if depth == 0 {
			p.err = fmt.Errorf("it is nested too deeply, at byte %d", p.at)
			return false
		}
		return p.container(i, depth-1)
	case '"':
		start, escaped, ok := p.str()
		v := &p.values[i]
		v.start, v.end, v.escaped = int32(start), int32(p.at-1), escaped
		return ok
	case 't':
		return p.literal(i, "true")
	case 'f':
		return p.literal(i, "false")
	case 'n':
		return p.literal(i, "null")
	}
	return p.number(i)
}

// container parses an object or an array, whose value is i.
func (p *parser) container(i, depth int) bool {
	object := p.src[p.at] == '{'
	closing := p.src[p.at] + 2 // ']' and '}' follow '[' and '{' so
	p.at++
	count := int32(0)
	p.space()
	for p.peek() != closing {
		if count > 0 {
			if p.peek() != ',' {
				return p.fail("want a comma or the end of the value")
			}
			p.at++
			p.space()
		}
		count++
		if object && !p.member(depth) || !object && !p.value(depth) {
			return false
		}
		p.space()
	}
	p.at++
	v := &p.values[i]
	v.end, v.count, v.size = int32(p.at), count, int32(len(p.values)-i)
	return true
}

func (p *parser) member(depth int) bool {
	if p.peek() != '"' {
		return p.fail("want the name of a member")
	}
	key, escaped, ok := p.str()
	keyEnd := p.at - 1
	if !ok {
		return false
	}
	if p.space(); p.peek() != ':' {
		return p.fail("want a colon")
	}
	p.at++
	p.space()
	i := len(p.values)
	if !p.value(depth) {
		return false
	}
	v := &p.values[i]
	v.key, v.keyEnd, v.keyEscaped = int32(key), int32(keyEnd), escaped
	return true
}

// str parses a string, and stands after its closing quote.
func (p *parser) str() (start int, escaped, ok bool) {
	p.at++
	start = p.at
	for p.at < len(p.src) {
		switch c := p.src[p.at]; {
		case c == '"':
			p.at++
			return start, escaped, true
		case c == '\\':
			escaped = true
			if !p.escape() {
				return start, true, false
			}
		case c < ' ':
			return start, escaped, p.fail("control character in a string")
		default:
			p.at++
		}
	}
	return start, escaped, p.fail("the string does not end")
}

func (p *parser) escape() bool {
	p.at++
	switch p.peek() {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		p.at++
		return true
	case 'u':
		if p.at+5 <= len(p.src) && hex4(p.src[p.at+1:]) >= 0 {
			p.at += 5
			return true
		}
	}
	return p.fail("unknown escape in a string")
}

func (p *parser) literal(i int, word string) bool {
	if !bytes.HasPrefix(p.src[p.at:], []byte(word)) {
		return p.fail("want a value")
	}
	p.at += len(word)
	p.values[i].end = int32(p.at)
	return true
}

func (p *parser) number(i int) bool {
	if p.peek() == '-' {
		p.at++
	}
	switch c := p.peek(); {
	case c == '0':
		p.at++
	case '1' <= c && c <= '9':
		p.digits()
	default:
		return p.fail("want a value")
	}
	if p.peek() == '.' {
		p.at++
		if !p.digits() {
			return p.fail("want digits after the point")
		}
	}
	if c := p.peek(); c == 'e' || c == 'E' {
		p.at++
		if c := p.peek(); c == '+' || c == '-' {
			p.at++
		}
		if !p.digits() {
			return p.fail("want an exponent")
		}
	}
	p.values[i].kind, p.values[i].end = 0, int32(p.at)
	return true
}

func (p *parser) digits() bool {
	start := p.at
	for '0' <= p.peek() && p.peek() <= '9' {
		p.at++
	}
	return p.at > start
}

// hex4 gives the number of four hexadecimal digits, or -1.
func hex4(s []byte) rune {
	if len(s) < 4 {
		return -1
	}
	r := rune(0)
	for _, c := range s[:4] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}

// raw is the text of a value; of a string, with its escapes and without quotes.
func (d *document) raw(i int32) []byte { return d.src[d.values[i].start:d.values[i].end] }

// text is the content of a string.
func (d *document) text(i int32) []byte {
	if !d.values[i].escaped {
		return d.raw(i)
	}
	return unescape(d.raw(i))
}

// name is the name of a member.
func (d *document) name(i int32) []byte {
	v := &d.values[i]
	if !v.keyEscaped {
		return d.src[v.key:v.keyEnd]
	}
	return unescape(d.src[v.key:v.keyEnd])
}

// first and next step through the members or elements of a value, of which
// there are count.
func (d *document) first(i int32) int32 { return i + 1 }
func (d *document) next(i int32) int32  { return i + d.values[i].size }

// member finds a member of an object by name, -1 when there is none. Of equal
// names the last counts, as for most parsers.
func (d *document) member(object int32, name string) int32 {
	found := int32(-1)
	if d.values[object].kind != '{' {
		return found
	}
	m := d.first(object)
	for range d.values[object].count {
		if v := &d.values[m]; v.keyEscaped {
			if string(d.name(m)) == name {
				found = m
			}
		} else if int(v.keyEnd-v.key) == len(name) && string(d.src[v.key:v.keyEnd]) == name {
			found = m
		}
		m = d.next(m)
	}
	return found
}

func unescape(s []byte) []byte {
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			out = append(out, s[i])
			continue
		}
		i++
		switch s[i] {
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r := hex4(s[i+1:])
			i += 4
			if utf16.IsSurrogate(r) && i+6 < len(s) && s[i+1] == '\\' && s[i+2] == 'u' {
				if pair := utf16.DecodeRune(r, hex4(s[i+3:])); pair != utf8.RuneError {
					r = pair
					i += 6
				}
			}
			out = utf8.AppendRune(out, r)
		default:
			out = append(out, s[i])
		}
	}
	return out
}

// quoted gives a name as messages show it, cut when it is long.
func quoted(name []byte) string {
	const most = 80
	if len(name) > most {
		cut := most
		for cut > 0 && !utf8.RuneStart(name[cut]) {
			cut--
		}
		name = append(append([]byte(nil), name[:cut]...), "…"...)
	}
	q := strconv.Quote(string(name))
	return "'" + q[1:len(q)-1] + "'"
}
