package activity

import (
	"bytes"
	"crypto/sha256"
	"slices"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"mcpproxy/internal/mcp/wirejson"
)

// The sealed part of a payload is one JSON object. What the spool knows first stands
// first (id, seq, time); then comes what the record says. What is chained has the commitments
// behind it (see open.go).

// buffer is memory that entries are encoded into, and salts for them.
type buffer struct {
	data  []byte
	salts salts
}

// bufferPool lends buffers.
type bufferPool struct{ pool sync.Pool }

const (
	bufferSize    = 2 << 10
	bufferSizeMax = 256 << 10 // one huge record must not pin its memory
)

func (p *bufferPool) get() *buffer {
	if b, ok := p.pool.Get().(*buffer); ok {
		return b
	}
	return &buffer{data: make([]byte, 0, bufferSize)}
}

func (p *bufferPool) put(b *buffer) {
	if cap(b.data) <= bufferSizeMax {
		p.pool.Put(b)
	}
}

// body encodes a payload without its prefix. It is valid until the next time.
func (b *buffer) body(p *payload) body {
	out := appendBody(b.data[:0], p, &b.salts)
	b.data = out.data
	return out
}

// body is a payload without its prefix, as it is chained: with its commitments.
type body struct {
	data    []byte
	chained int // how much of it is
	commits int // how much of that the commitments are
}

// newBody encodes a payload without its prefix.
func newBody(p *payload) body { return new(buffer).body(p) }

// bodyOf is a body that was written earlier.
func bodyOf(data []byte) body {
	chained, open, _ := parts(data)
	b := body{data: data, chained: len(chained)}
	if open != nil {
		b.commits = len(chained) - max(0, bytes.LastIndex(chained, []byte(commitName)))
	}
	return b
}

// finish makes a line that ends with what is chained one that ends as it is stored.
func (b *body) finish(line []byte) []byte {
	if b.commits == 0 {
		return line
	}
	line = append(line[:len(line)-b.commits], '}')
	return append(line, b.data[b.chained:]...)
}

// appendPrefix writes the part of the payload that is known only when the entry
// takes its place in the chain.
func appendPrefix(dst []byte, k Kind, id string, seq int64, now time.Time, ms int64) []byte {
	dst = append(dst, `{"id":"`...)
	dst = append(dst, id...)
	dst = append(dst, `","seq":`...)
	dst = strconv.AppendInt(dst, seq, 10)
	if k == KindEnd || k == KindRepeat {
		dst = append(dst, `,"at":`...)
		dst = strconv.AppendInt(dst, ms, 10)
		return append(dst, ',')
	}
	dst = append(dst, `,"timestamp":"`...)
	dst = now.AppendFormat(dst, time.RFC3339Nano)
	return append(dst, `",`...)
}

// value is one of an open part: JSON, a text or some texts.
type value struct {
	field Field
	raw   []byte
	text  string
	texts []string
}

// values are those that the payload has.
func (p *payload) values(all *[len(fields)]value) []value {
	n := 0
	if len(p.Arguments) > 0 {
		all[n].field, all[n].raw = FieldArguments, p.Arguments
		n++
	}
	if len(p.Response) > 0 {
		all[n].field, all[n].raw = FieldResponse, p.Response
		n++
	}
	if p.ErrorMessage != "" {
		all[n].field, all[n].text = FieldError, p.ErrorMessage
		n++
	}
	if in := p.Metadata.Intent; in != nil {
		if in.Reason != "" {
			all[n].field, all[n].text = FieldReason, in.Reason
			n++
		}
		if len(in.Declared) > 0 {
			all[n].field, all[n].raw = FieldDeclared, in.Declared
			n++
		}
	}
	if s := p.Metadata.Search; s != nil {
		all[n].field, all[n].text = FieldQuery, s.Query
		n++
	}
	if len(p.Metadata.Warnings) > 0 {
		all[n].field, all[n].texts = FieldWarnings, p.Metadata.Warnings
		n++
	}
	return all[:n]
}

// append writes a value as JSON.
func (v *value) append(dst []byte) []byte {
	switch {
	case v.raw != nil:
		return wirejson.AppendAsOneLine(dst, v.raw)
	case v.texts != nil:
		return appendTexts(dst, v.texts)
	}
	return wirejson.AppendString(dst, v.text)
}

// appendBody writes everything of an entry but the prefix.
func appendBody(dst []byte, p *payload, salts *salts) body {
	start := len(dst)
	c := coder{out: append(append(dst, `"kind":`...), kinds[p.kind]...)}
	p.members(&c)
	dst = c.out
	var room [len(fields)]value
	values := p.values(&room)
	if len(values) == 0 {
		dst = append(dst, '}')
		return body{data: dst[start:], chained: len(dst) - start}
	}
	from := len(dst)
	dst = append(dst, commitName...)
	for i := range values {
		dst = append(append(append(dst, '"'), values[i].field...), `":"`+noHash+`",`...)
	}
	dst = append(dst[:len(dst)-1], "}}"...)
	chained := len(dst)
	dst = append(dst, '\t')
	before, commit := byte('{'), from+len(commitName)
	for i := range values {
		v := &values[i]
		commit += len(v.field) + len(`"":"`)
		dst = append(append(append(dst, before, '"'), v.field...), `":[`...)
		before = ','
		var inner []byte
		dst, inner = appendInner(dst, v, salts)
		sum := Hash(sha256.Sum256(inner))
		sum.put(dst[commit:])
		commit += hexLen + len(`",`)
		dst = append(dst, ']')
	}
	dst = append(dst, '}')
	return body{dst[start:], chained - start, chained - from}
}

// noHash is in the place of a hash that comes later.
const noHash = "0000000000000000000000000000000000000000000000000000000000000000"

// appendInner writes the length of a salt with a value, and these.
func appendInner(dst []byte, v *value, salts *salts) (_, inner []byte) {
	if v.raw != nil {
		if !utf8.Valid(v.raw) {
			v.raw = bytes.ToValidUTF8(v.raw, []byte("\uFFFD"))
		}
		dst, n := appendSalt(dst, len(v.raw), salts)
		dst = v.append(dst)
		return dst, dst[len(dst)-n:]
	}
	start := len(dst)
	dst = v.append(dst)
	var room [innerLen + 24]byte
	head, n := appendSalt(room[:0], len(dst)-start, salts)
	dst = slices.Insert(dst, start, head...)
	return dst, dst[len(dst)-n:]
}

// appendSalt writes what stands before a value of a length, and returns the length n of a salt
// with it.
func appendSalt(dst []byte, length int, salts *salts) (_ []byte, n int) {
	bare := saltText + len(`"",`) + length
	n = max(bare, innerLen)
	dst = append(strconv.AppendInt(dst, int64(n), 10), ',')
	return append(salts.append(dst, n-bare), ','), n
}
