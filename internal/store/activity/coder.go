package activity

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"mcpproxy/internal/mcp/wirejson"
)

// coder writes the members of an object, or reads one of them. So what is in an
// object is said once, by its members method, in the order in which it is written.
// A member is named by its head: as it is written, with a comma before it.
type coder struct {
	out []byte // what is written

	reading     bool
	name, value []byte // of the member that is read
	err         error  // of reading

	open  [2]level // objects that are being written or read
	depth int
}

type level struct {
	head string
	at   int      // where it begins in out
	rest []member // that are to be read
}

type member struct{ name, value []byte }

var errPayload = errors.New("read an entry of the log: it is not as it was written")

// takes reports whether the member with this head is the one that is read.
func (c *coder) takes(head string) bool {
	return c.reading && string(c.name) == head[len(`,"`):len(head)-len(`":`)]
}

// text is a text that is left out when it is empty.
func (c *coder) text(head string, v *string) {
	if c.reading || *v != "" {
		c.fullText(head, v)
	}
}

func (c *coder) fullText(head string, v *string) {
	if !c.reading {
		c.out = wirejson.AppendString(append(c.out, head...), *v)
	} else if c.takes(head) {
		*v = c.string(c.value)
	}
}

// number is a number that is left out when it is 0.
func (c *coder) number(head string, v *int64) {
	if c.reading || *v != 0 {
		c.fullNumber(head, v)
	}
}

func (c *coder) fullNumber(head string, v *int64) {
	if !c.reading {
		c.out = strconv.AppendInt(append(c.out, head...), *v, 10)
	} else if c.takes(head) {
		n, ok := wirejson.Int(c.value)
		*v = n
		c.check(ok)
	}
}

// flag is left out unless it is set.
func (c *coder) flag(head string, v *bool) {
	if c.takes(head) {
		*v = string(c.value) == "true"
	} else if !c.reading && *v {
		c.out = append(append(c.out, head...), "true"...)
	}
}

// was reads a text that stands in the open part by now, where an earlier version has
// written it.
func (c *coder) was(head string, v *string) {
	if c.takes(head) {
		*v = c.string(c.value)
	}
}

// wereTexts is was for some texts.
func (c *coder) wereTexts(head string, v *[]string) {
	if c.takes(head) {
		*v = c.strings(c.value)
	}
}

func (c *coder) strings(value []byte) (texts []string) {
	c.fail(wirejson.EachElement(value, func(value []byte) error {
		texts = append(texts, c.string(value))
		return c.err
	}))
	return texts
}

// texts are left out when there are none.
func (c *coder) texts(head string, v *[]string) {
	if !c.reading && len(*v) > 0 {
		c.out = appendTexts(append(c.out, head...), *v)
	} else {
		c.wereTexts(head, v)
	}
}

func appendTexts[T ~string](dst []byte, texts []T) []byte {
	dst = append(dst, '[')
	for i, text := range texts {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = wirejson.AppendString(dst, text)
	}
	return append(dst, ']')
}

func (c *coder) moment(head string, v *time.Time) {
	if !c.reading {
		c.out = append(append(c.out, head...), '"')
		c.out = append(v.UTC().AppendFormat(c.out, time.RFC3339Nano), '"')
	} else if c.takes(head) {
		t, err := time.Parse(time.RFC3339Nano, c.string(c.value))
		*v = t
		c.fail(err)
	}
}

// object is the condition of a loop whose body has the members of an object: to
// write it, the body runs once, to read it, for each of the members that are there.
// An object without members is left out.
func (c *coder) object(head string) bool {
	if c.depth == 0 || c.open[c.depth-1].head != head {
		return c.enter(head)
	}
	l := &c.open[c.depth-1]
	if c.reading && len(l.rest) > 0 {
		c.name, c.value, l.rest = l.rest[0].name, l.rest[0].value, l.rest[1:]
		return true
	}
	c.depth--
	if from := l.at + len(head) + 1; c.reading {
		c.name = nil
	} else if len(c.out) == from {
		c.out = c.out[:l.at]
	} else {
		c.out = append(slices.Delete(c.out, from, from+1), '}') // the comma of the first member
	}
	return false
}

func (c *coder) enter(head string) bool {
	l := level{head: head, at: len(c.out)}
	if !c.reading {
		c.out = append(append(c.out, head...), '{')
	} else if c.takes(head) {
		var rest []member
		c.fail(wirejson.EachMember(c.value, func(name, value []byte) error {
			rest = append(rest, member{name, value})
			return nil
		}))
		l.rest = rest
	} else {
		return false
	}
	c.open[c.depth] = l
	c.depth++
	return !c.reading || c.object(head)
}

func (c *coder) string(value []byte) string {
	text, ok := wirejson.String(value)
	c.check(ok)
	return text
}

func (c *coder) check(ok bool) {
	if !ok {
		c.fail(errPayload)
	}
}

func (c *coder) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

// asJSON copies raw. What turns out to be no JSON is kept as a string, and what
// is not UTF-8 becomes U+FFFD, so that a record can always be encoded.
func asJSON(raw []byte) json.RawMessage {
	if len(raw) == 0 {
		return nil
	}
	if !json.Valid(raw) {
		return wirejson.AppendString(nil, raw)
	}
	if !utf8.Valid(raw) {
		return bytes.ToValidUTF8(raw, []byte("\uFFFD"))
	}
	return bytes.Clone(raw)
}
