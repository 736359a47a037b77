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

// jsonMemberCodec either writes all members of a JSON object or reads one of them. So each readOrWriteMembers method
// lists the members of its object only once, in the order in which they are written. The head identifies a member: a
// comma, the quoted name and a colon.
type jsonMemberCodec struct {
	out []byte // the written JSON

	reading     bool
	name, value []byte // of the current member, when reading
	err         error  // the first error while reading

	objects [2]jsonObjectInProgress // objects that are being written or read
	depth   int
}

type jsonObjectInProgress struct {
	head   string
	start  int          // offset of the object in out
	unread []jsonMember // members that have not been read yet
}

type jsonMember struct{ name, value []byte }

var errMalformedPayload = errors.New("read an entry of the log: it was changed")

// isReadingMember reports whether the member with this head is being read.
func (c *jsonMemberCodec) isReadingMember(head string) bool {
	return c.reading && string(c.name) == head[len(`,"`):len(head)-len(`":`)]
}

// readOrWriteText writes or reads a text. It does not write an empty text.
func (c *jsonMemberCodec) readOrWriteText(head string, v *string) {
	if c.reading || *v != "" {
		c.readOrWriteRequiredText(head, v)
	}
}

func (c *jsonMemberCodec) readOrWriteRequiredText(head string, v *string) {
	if !c.reading {
		c.out = wirejson.AppendString(append(c.out, head...), *v)
	} else if c.isReadingMember(head) {
		*v = c.parseText(c.value)
	}
}

// readOrWriteNumber writes or reads a number. It does not write a zero.
func (c *jsonMemberCodec) readOrWriteNumber(head string, v *int64) {
	if c.reading || *v != 0 {
		c.readOrWriteRequiredNumber(head, v)
	}
}

func (c *jsonMemberCodec) readOrWriteRequiredNumber(head string, v *int64) {
	if !c.reading {
		c.out = strconv.AppendInt(append(c.out, head...), *v, 10)
	} else if c.isReadingMember(head) {
		n, ok := wirejson.Int(c.value)
		*v = n
		c.requireValid(ok)
	}
}

// readOrWriteFlag writes or reads a flag. It does not write false.
func (c *jsonMemberCodec) readOrWriteFlag(head string, v *bool) {
	if c.isReadingMember(head) {
		*v = string(c.value) == "true"
	} else if !c.reading && *v {
		c.out = append(append(c.out, head...), "true"...)
	}
}

// readTextOfOldFormat reads a text that earlier versions wrote as a member. Now the text is in the erasable part.
func (c *jsonMemberCodec) readTextOfOldFormat(head string, v *string) {
	if c.isReadingMember(head) {
		*v = c.parseText(c.value)
	}
}

// readTextsOfOldFormat reads a list of texts that earlier versions wrote as a member.
func (c *jsonMemberCodec) readTextsOfOldFormat(head string, v *[]string) {
	if c.isReadingMember(head) {
		*v = c.parseTexts(c.value)
	}
}

func (c *jsonMemberCodec) parseTexts(value []byte) (texts []string) {
	c.setFirstError(wirejson.EachElement(value, func(value []byte) error {
		texts = append(texts, c.parseText(value))
		return c.err
	}))
	return texts
}

// readOrWriteTexts writes or reads a list of texts. It does not write an empty list.
func (c *jsonMemberCodec) readOrWriteTexts(head string, v *[]string) {
	if !c.reading && len(*v) > 0 {
		c.out = appendTextArray(append(c.out, head...), *v)
	} else {
		c.readTextsOfOldFormat(head, v)
	}
}

func appendTextArray[T ~string](dst []byte, texts []T) []byte {
	dst = append(dst, '[')
	for i, text := range texts {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = wirejson.AppendString(dst, text)
	}
	return append(dst, ']')
}

func (c *jsonMemberCodec) readOrWriteTime(head string, v *time.Time) {
	if !c.reading {
		c.out = append(append(c.out, head...), '"')
		c.out = append(v.UTC().AppendFormat(c.out, time.RFC3339Nano), '"')
	} else if c.isReadingMember(head) {
		t, err := time.Parse(time.RFC3339Nano, c.parseText(c.value))
		*v = t
		c.setFirstError(err)
	}
}

// nextObjectMember is the condition of a loop whose body writes or reads the members of an object. When writing, the
// body runs once. When reading, it runs once for each member of the object. An object without members is not written.
func (c *jsonMemberCodec) nextObjectMember(head string) bool {
	if c.depth == 0 || c.objects[c.depth-1].head != head {
		return c.enterObject(head)
	}
	l := &c.objects[c.depth-1]
	if c.reading && len(l.unread) > 0 {
		c.name, c.value, l.unread = l.unread[0].name, l.unread[0].value, l.unread[1:]
		return true
	}
	c.depth--
	if from := l.start + len(head) + 1; c.reading {
		c.name = nil
	} else if len(c.out) == from {
		c.out = c.out[:l.start]
	} else {
		c.out = append(slices.Delete(c.out, from, from+1), '}') // removes the comma before the first member
	}
	return false
}

func (c *jsonMemberCodec) enterObject(head string) bool {
	l := jsonObjectInProgress{head: head, start: len(c.out)}
	if !c.reading {
		c.out = append(append(c.out, head...), '{')
	} else if c.isReadingMember(head) {
		var rest []jsonMember
		c.setFirstError(wirejson.EachMember(c.value, func(name, value []byte) error {
			rest = append(rest, jsonMember{name, value})
			return nil
		}))
		l.unread = rest
	} else {
		return false
	}
	c.objects[c.depth] = l
	c.depth++
	return !c.reading || c.nextObjectMember(head)
}

func (c *jsonMemberCodec) parseText(value []byte) string {
	text, ok := wirejson.String(value)
	c.requireValid(ok)
	return text
}

func (c *jsonMemberCodec) requireValid(ok bool) {
	if !ok {
		c.setFirstError(errMalformedPayload)
	}
}

func (c *jsonMemberCodec) setFirstError(err error) {
	if c.err == nil {
		c.err = err
	}
}

// toValidJSON returns a copy of raw that can be part of a record: it turns invalid JSON into a JSON string, and
// replaces invalid UTF-8 by U+FFFD.
func toValidJSON(raw []byte) json.RawMessage {
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
