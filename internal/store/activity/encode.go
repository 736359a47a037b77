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

// encodeBuffer is memory that entries are encoded into, and salts for them.
type encodeBuffer struct {
	data  []byte
	salts saltPool
}

// encodeBufferPool lends buffers.
type encodeBufferPool struct{ pool sync.Pool }

const (
	bufferSize    = 2 << 10
	bufferSizeMax = 256 << 10 // one huge record must not pin its memory
)

func (p *encodeBufferPool) get() *encodeBuffer {
	if b, ok := p.pool.Get().(*encodeBuffer); ok {
		return b
	}
	return &encodeBuffer{data: make([]byte, 0, bufferSize)}
}

func (p *encodeBufferPool) put(b *encodeBuffer) {
	if cap(b.data) <= bufferSizeMax {
		p.pool.Put(b)
	}
}

// encodeBody encodes a payload without its prefix. It is valid until the next time.
func (b *encodeBuffer) encodeBody(p *payload) encodedBody {
	out := appendEncodedBody(b.data[:0], p, &b.salts)
	b.data = out.data
	return out
}

// encodeBody is a payload without its prefix, as it is chained: with its commitments.
type encodedBody struct {
	data           []byte
	chainedLen     int // how much of it is
	commitmentsLen int // how much of that the commitments are
}

// encodeNewBody encodes a payload without its prefix.
func encodeNewBody(p *payload) encodedBody { return new(encodeBuffer).encodeBody(p) }

// parseEncodedBody is a body that was written earlier.
func parseEncodedBody(data []byte) encodedBody {
	chained, open, _ := splitPayload(data)
	b := encodedBody{data: data, chainedLen: len(chained)}
	if open != nil {
		b.commitmentsLen = len(chained) - max(0, bytes.LastIndex(chained, []byte(commitName)))
	}
	return b
}

// toStoredLine makes a line that ends with what is chained one that ends as it is stored.
func (b *encodedBody) toStoredLine(line []byte) []byte {
	if b.commitmentsLen == 0 {
		return line
	}
	line = append(line[:len(line)-b.commitmentsLen], '}')
	return append(line, b.data[b.chainedLen:]...)
}

// appendPayloadPrefix writes the part of the payload that is known only when the entry
// takes its place in the chain.
func appendPayloadPrefix(dst []byte, k EntryKind, id string, seq int64, now time.Time, ms int64) []byte {
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

// fieldValue is one of an open part: JSON, a text or some texts.
type fieldValue struct {
	field ErasableField
	raw   []byte
	text  string
	texts []string
}

// fieldValues are those that the payload has.
func (p *payload) fieldValues(all *[len(erasableFields)]fieldValue) []fieldValue {
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

// appendSalt writes a value as JSON.
func (v *fieldValue) appendJSON(dst []byte) []byte {
	switch {
	case v.raw != nil:
		return wirejson.AppendLine(dst, v.raw)
	case v.texts != nil:
		return appendTextArray(dst, v.texts)
	}
	return wirejson.AppendString(dst, v.text)
}

// appendEncodedBody writes everything of an entry but the prefix.
func appendEncodedBody(dst []byte, p *payload, salts *saltPool) encodedBody {
	start := len(dst)
	c := memberCodec{out: append(append(dst, `"kind":`...), kindNames[p.kind]...)}
	p.codeMembers(&c)
	dst = c.out
	var room [len(erasableFields)]fieldValue
	values := p.fieldValues(&room)
	if len(values) == 0 {
		dst = append(dst, '}')
		return encodedBody{data: dst[start:], chainedLen: len(dst) - start}
	}
	from := len(dst)
	dst = append(dst, commitName...)
	for i := range values {
		dst = append(append(append(dst, '"'), values[i].field...), `":"`+hashPlaceholder+`",`...)
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
		dst, inner = appendSaltedValue(dst, v, salts)
		sum := Hash(sha256.Sum256(inner))
		sum.writeHex(dst[commit:])
		commit += hexLen + len(`",`)
		dst = append(dst, ']')
	}
	dst = append(dst, '}')
	return encodedBody{dst[start:], chained - start, chained - from}
}

// hashPlaceholder is in the place of a hash that comes later.
const hashPlaceholder = "0000000000000000000000000000000000000000000000000000000000000000"

// appendSaltedValue writes the length of a salt with a value, and these.
func appendSaltedValue(dst []byte, v *fieldValue, salts *saltPool) (_, inner []byte) {
	if v.raw != nil {
		if !utf8.Valid(v.raw) {
			v.raw = bytes.ToValidUTF8(v.raw, []byte("\uFFFD"))
		}
		dst, n := appendLengthAndSalt(dst, len(v.raw), salts)
		dst = v.appendJSON(dst)
		return dst, dst[len(dst)-n:]
	}
	start := len(dst)
	dst = v.appendJSON(dst)
	var room [minContentLen + 24]byte
	head, n := appendLengthAndSalt(room[:0], len(dst)-start, salts)
	dst = slices.Insert(dst, start, head...)
	return dst, dst[len(dst)-n:]
}

// appendLengthAndSalt writes what stands before a value of a length, and returns the length n of a salt
// with it.
func appendLengthAndSalt(dst []byte, length int, salts *saltPool) (_ []byte, n int) {
	bare := saltText + len(`"",`) + length
	n = max(bare, minContentLen)
	dst = append(strconv.AppendInt(dst, int64(n), 10), ',')
	return append(salts.appendSalt(dst, n-bare), ','), n
}
