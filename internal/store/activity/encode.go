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

	"mcpproxy/internal/mcp/wirejson"
)

// The sealed part of a payload is one JSON object. It begins with the fields of the spool (id, seq, time), followed by
// the fields of the record. The chained text also has the commitments at its end (see erasable.go).

// encodeBuffer is reusable memory for encoding entries, with a pool of salts.
type encodeBuffer struct {
	data  []byte
	salts saltPool
}

// encodeBufferPool is a pool of encode buffers.
type encodeBufferPool struct{ pool sync.Pool }

const (
	bufferSize    = 2 << 10
	bufferSizeMax = 256 << 10 // larger buffers are not reused, so that one huge record does not keep its memory
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

// encodeBody encodes a payload without its prefix. The result is valid until the next call.
func (b *encodeBuffer) encodeBody(p *payload) encodedBody {
	out := appendEncodedBody(b.data[:0], p, &b.salts)
	b.data = out.data
	return out
}

// encodedBody is a payload without its prefix: the chained text with its commitments, then the erasable part.
type encodedBody struct {
	data           []byte
	chainedLen     int // length of the chained part of data
	commitmentsLen int // length of the commitments in the chained part
}

// encodeBodyInNewBuffer encodes a payload without its prefix into new memory.
func encodeBodyInNewBuffer(p *payload) encodedBody { return new(encodeBuffer).encodeBody(p) }

// parseEncodedBody returns the encodedBody for data that was encoded earlier.
func parseEncodedBody(data []byte) encodedBody {
	chained, open, _ := splitPayload(data)
	b := encodedBody{data: data, chainedLen: len(chained)}
	if open != nil {
		b.commitmentsLen = len(chained) - max(0, bytes.LastIndex(chained, []byte(commitName)))
	}
	return b
}

// toStoredLine converts a line that ends with the chained text into its stored form: without the commitments and with
// the erasable part.
func (b *encodedBody) toStoredLine(line []byte) []byte {
	if b.commitmentsLen == 0 {
		return line
	}
	line = append(line[:len(line)-b.commitmentsLen], '}')
	return append(line, b.data[b.chainedLen:]...)
}

// appendPayloadPrefix appends the first part of the payload. Its values are known only when the entry receives its
// sequence number.
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

// erasableFieldValue is the value of one erasable field: JSON, a text or a list of texts.
type erasableFieldValue struct {
	field ErasableField
	raw   []byte
	text  string
	texts []string
}

// erasableFieldValues returns the values of the erasable fields of the payload. It stores them in the array all.
func (p *payload) erasableFieldValues(all *[len(erasableFields)]erasableFieldValue) []erasableFieldValue {
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

// appendJSON appends the value as JSON.
func (v *erasableFieldValue) appendJSON(dst []byte) []byte {
	switch {
	case v.raw != nil:
		return wirejson.AppendAsOneLine(dst, v.raw)
	case v.texts != nil:
		return appendTextArray(dst, v.texts)
	}
	return wirejson.AppendString(dst, v.text)
}

// appendEncodedBody appends a whole entry except for its prefix.
func appendEncodedBody(dst []byte, p *payload, salts *saltPool) encodedBody {
	start := len(dst)
	w := memberWriter{append(append(append(dst, `"kind":"`...), kindNames[p.kind]...), '"')}
	p.writeMembers(&w)
	dst = w.out
	var room [len(erasableFields)]erasableFieldValue
	values := p.erasableFieldValues(&room)
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
		sum := sha256.Sum256(inner)
		hex.Encode(dst[commit:], sum[:])
		commit += hexLen + len(`",`)
		dst = append(dst, ']')
	}
	dst = append(dst, '}')
	return encodedBody{dst[start:], chained - start, chained - from}
}

// hashPlaceholder reserves space for a hash that is written later.
const hashPlaceholder = "0000000000000000000000000000000000000000000000000000000000000000"

// appendSaltedValue appends the length of a salt and a value, then the salt and the value. It also returns the part
// that the commitment covers.
func appendSaltedValue(dst []byte, v *erasableFieldValue, salts *saltPool) (_, inner []byte) {
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

// appendLengthAndSalt appends the length and the salt that precede a value. length is the length of the value. n is the
// length of the salt with the value.
func appendLengthAndSalt(dst []byte, length int, salts *saltPool) (_ []byte, n int) {
	bare := saltText + len(`"",`) + length
	n = max(bare, minContentLen)
	dst = append(strconv.AppendInt(dst, int64(n), 10), ',')
	return append(salts.appendSalt(dst, n-bare), ','), n
}
