package activity

import (
	"strconv"
	"sync"
	"time"

	"mcpproxy/internal/rawjson"
)

// The payload of an entry is one JSON object. What the spool knows first stands
// first (id, seq, time); then comes what the record says; the arguments and the
// response, which are not ours, come last, and "raw" gives their lengths, so
// that a record can be read whatever they hold.

// bufferPool lends the memory that entries are encoded into.
type bufferPool struct{ pool sync.Pool }

const (
	bufferSize    = 1 << 10
	bufferSizeMax = 256 << 10 // one huge record must not pin its memory
)

func (p *bufferPool) get() *[]byte {
	if b, ok := p.pool.Get().(*[]byte); ok {
		*b = (*b)[:0]
		return b
	}
	b := make([]byte, 0, bufferSize)
	return &b
}

func (p *bufferPool) put(b *[]byte) {
	if cap(*b) <= bufferSizeMax {
		p.pool.Put(b)
	}
}

// prefixMax is room for everything appendPrefix writes.
const prefixMax = 160

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

// appendPayload writes everything of an entry but the prefix.
func appendPayload(dst []byte, p *payload) []byte {
	dst = append(append(dst, `"kind":`...), kinds[p.kind]...)
	dst = strconv.AppendInt(append(dst, `,"raw":[`...), int64(len(p.Arguments)), 10)
	dst = strconv.AppendInt(append(dst, ','), int64(len(p.Response)), 10)
	c := coder{out: append(dst, ']')}
	p.members(&c)
	dst = c.out
	if len(p.Arguments) > 0 {
		dst = rawjson.AppendLine(append(dst, argumentsName...), p.Arguments)
	}
	if len(p.Response) > 0 {
		dst = rawjson.AppendLine(append(dst, responseName...), p.Response)
	}
	return append(dst, '}')
}

const (
	argumentsName = `,"arguments":`
	responseName  = `,"response":`
)
