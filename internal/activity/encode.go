package activity

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"mcpproxy/internal/rawjson"
)

// The sealed part of a payload is one JSON object. What the spool knows first stands
// first (id, seq, time); then comes what the record says; last, what it commits to.

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

// body is a payload without its prefix.
type body struct {
	data   []byte
	sealed int // how much of it is
}

// newBody encodes a payload without its prefix.
func newBody(p *payload) body { return new(buffer).body(p) }

// bodyOf is a body that was written earlier.
func bodyOf(data []byte) body {
	sealed, _, _ := parts(data)
	return body{data, len(sealed)}
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
func (p *payload) values(all *[7]value) []value {
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
		return rawjson.AppendLine(dst, v.raw)
	case v.texts != nil:
		return appendTexts(dst, v.texts)
	}
	return rawjson.AppendString(dst, v.text)
}

// appendBody writes everything of an entry but the prefix.
func appendBody(dst []byte, p *payload, salts *salts) body {
	start := len(dst)
	c := coder{out: append(append(dst, `"kind":`...), kinds[p.kind]...)}
	p.members(&c)
	dst = c.out
	var room [7]value
	values := p.values(&room)
	if len(values) == 0 {
		dst = append(dst, '}')
		return body{dst[start:], len(dst) - start}
	}
	dst = append(dst, commitName[:len(commitName)-1]...)
	before := byte('{')
	for i := range values {
		dst = append(append(append(dst, before, '"'), values[i].field...), `":"`...)
		dst = append(append(dst, zeros[:]...), '"')
		before = ','
	}
	dst = append(dst, "}}"...)
	sealed := len(dst)
	dst = append(dst, '\t')
	before = '{'
	commit := sealed - len("}}") // the end of the last one
	for i := range values {
		commit -= len(values[i].field) + len(`,"":""`) + hexLen
	}
	for i := range values {
		v := &values[i]
		commit += len(v.field) + len(`,"":""`) + hexLen
		dst = append(append(append(dst, before, '"'), v.field...), `":[`...)
		before = ','
		var inner []byte
		dst, inner = appendInner(dst, v, salts)
		sum := sha256.Sum256(inner)
		hex.Encode(dst[commit-1-hexLen:], sum[:])
		dst = append(dst, ']')
	}
	dst = append(dst, '}')
	return body{dst[start:], sealed - start}
}

var zeros [hexLen]byte

// appendInner writes the length of a salt with a value, and these.
func appendInner(dst []byte, v *value, salts *salts) (_, inner []byte) {
	if v.raw != nil {
		if !utf8.Valid(v.raw) {
			v.raw = bytes.ToValidUTF8(v.raw, []byte("\uFFFD"))
		}
		dst = append(strconv.AppendInt(dst, int64(saltText+len(`"",`)+len(v.raw)), 10), ',')
		start := len(dst)
		dst = v.append(append(salts.append(dst), ','))
		return dst, dst[start:]
	}
	start := len(dst)
	dst = v.append(append(salts.append(dst), ','))
	n := len(dst) - start
	var number [20]byte
	length := append(strconv.AppendInt(number[:0], int64(n), 10), ',')
	dst = slices.Insert(dst, start, length...)
	return dst, dst[start+len(length):]
}
