package activity

import (
	"bytes"
	"encoding/json"
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

// appendRecord writes everything of a beginning or of a whole record but the
// prefix.
func appendRecord(dst []byte, k Kind, r *Record, args, response json.RawMessage) []byte {
	if k == KindBegin {
		dst = append(dst, `"kind":"begin"`...)
	} else {
		dst = append(dst, `"kind":"record"`...)
	}
	dst = appendLengths(dst, len(args), len(response))
	dst = appendText(dst, `,"type":`, string(r.Type))
	dst = appendText(dst, `,"status":`, string(r.Status))
	dst = appendText(dst, `,"server_name":`, r.ServerName)
	dst = appendText(dst, `,"tool_name":`, r.ToolName)
	if r.ArgumentsTruncated {
		dst = append(dst, `,"arguments_truncated":true`...)
	}
	if r.ResponseTruncated {
		dst = append(dst, `,"response_truncated":true`...)
	}
	dst = appendText(dst, `,"error_message":`, r.ErrorMessage)
	dst = appendNumber(dst, `,"duration_ms":`, r.DurationMS)
	dst = appendNumber(dst, `,"request_bytes":`, r.RequestBytes)
	dst = appendNumber(dst, `,"response_bytes":`, r.ResponseBytes)
	dst = appendText(dst, `,"session_id":`, r.SessionID)
	dst = appendText(dst, `,"request_id":`, r.RequestID)
	dst = appendText(dst, `,"parent_id":`, r.ParentID)
	dst = appendText(dst, `,"source":`, string(r.Source))
	dst = appendText(dst, `,"actor":`, r.Actor)
	dst = appendText(dst, `,"client_name":`, r.ClientName)
	dst = appendText(dst, `,"client_version":`, r.ClientVersion)
	dst = appendMetadata(dst, &r.Metadata)
	return appendRaws(dst, args, response)
}

func appendMetadata(dst []byte, m *Metadata) []byte {
	start := len(dst)
	dst = append(dst, `,"metadata":{`...)
	empty := len(dst)
	if in := m.Intent; in != nil {
		dst = append(dst, `,"intent":{"operation_type":`...)
		dst = rawjson.AppendString(dst, in.OperationType)
		dst = appendText(dst, `,"data_sensitivity":`, in.DataSensitivity)
		dst = appendText(dst, `,"reason":`, in.Reason)
		dst = append(dst, '}')
	}
	dst = appendText(dst, `,"tool_variant":`, m.ToolVariant)
	dst = appendTexts(dst, `,"warnings":[`, m.Warnings)
	dst = appendText(dst, `,"error_code":`, m.ErrorCode)
	if s := m.Search; s != nil {
		dst = append(dst, `,"search":{"query":`...)
		dst = rawjson.AppendString(dst, s.Query)
		dst = appendNumber(dst, `,"rank":`, int64(s.Rank))
		dst = append(dst, '}')
	}
	dst = appendText(dst, `,"action":`, m.Action)
	dst = appendText(dst, `,"detail":`, m.Detail)
	if len(dst) == empty {
		return dst[:start]
	}
	copy(dst[empty:], dst[empty+1:]) // the comma before the first member
	dst[len(dst)-1] = '}'
	return dst
}

// appendOutcome writes everything of an end but the prefix.
func appendOutcome(dst []byte, of int64, o *Outcome, response json.RawMessage, truncated bool) []byte {
	dst = append(dst, `"kind":"end"`...)
	dst = appendLengths(dst, 0, len(response))
	dst = append(dst, `,"of":`...)
	dst = strconv.AppendInt(dst, of, 10)
	dst = appendText(dst, `,"status":`, string(o.Status))
	dst = appendNumber(dst, `,"duration_ms":`, o.Duration.Milliseconds())
	dst = appendNumber(dst, `,"response_bytes":`, o.ResponseBytes)
	dst = appendText(dst, `,"error_message":`, o.ErrorMessage)
	dst = appendText(dst, `,"error_code":`, o.ErrorCode)
	dst = appendTexts(dst, `,"warnings":[`, o.Warnings)
	if truncated {
		dst = append(dst, `,"response_truncated":true`...)
	}
	return appendRaws(dst, nil, response)
}

// appendRepeat writes everything of a count but the prefix. message replaces
// the record's, unless it is empty.
func appendRepeat(dst []byte, of, times int64, last time.Time, message string) []byte {
	dst = append(dst, `"kind":"repeat"`...)
	dst = appendLengths(dst, 0, 0)
	dst = append(dst, `,"of":`...)
	dst = strconv.AppendInt(dst, of, 10)
	dst = append(dst, `,"repeated":`...)
	dst = strconv.AppendInt(dst, times, 10)
	dst = append(dst, `,"last_time":"`...)
	dst = last.UTC().AppendFormat(dst, time.RFC3339Nano)
	dst = append(dst, '"')
	dst = appendText(dst, `,"error_message":`, message)
	return append(dst, '}')
}

func appendLengths(dst []byte, args, response int) []byte {
	dst = append(dst, `,"raw":[`...)
	dst = strconv.AppendInt(dst, int64(args), 10)
	dst = append(dst, ',')
	dst = strconv.AppendInt(dst, int64(response), 10)
	return append(dst, ']')
}

const (
	argumentsName = `,"arguments":`
	responseName  = `,"response":`
)

// appendRaws ends the payload.
func appendRaws(dst []byte, args, response json.RawMessage) []byte {
	if len(args) > 0 {
		dst = appendRaw(append(dst, argumentsName...), args)
	}
	if len(response) > 0 {
		dst = appendRaw(append(dst, responseName...), response)
	}
	return append(dst, '}')
}

// appendRaw copies JSON that is not ours. Line ends can only be white space in
// it, and an entry is one line.
func appendRaw(dst, raw []byte) []byte {
	start := len(dst)
	dst = append(dst, raw...)
	blank(dst[start:], '\n')
	blank(dst[start:], '\r')
	return dst
}

func blank(b []byte, c byte) {
	for {
		i := bytes.IndexByte(b, c)
		if i < 0 {
			return
		}
		b[i] = ' '
		b = b[i+1:]
	}
}

func appendText(dst []byte, name, value string) []byte {
	if value == "" {
		return dst
	}
	return rawjson.AppendString(append(dst, name...), value)
}

func appendNumber(dst []byte, name string, value int64) []byte {
	if value == 0 {
		return dst
	}
	return strconv.AppendInt(append(dst, name...), value, 10)
}

func appendTexts(dst []byte, name string, values []string) []byte {
	if len(values) == 0 {
		return dst
	}
	dst = append(dst, name...)
	for i, v := range values {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = rawjson.AppendString(dst, v)
	}
	return append(dst, ']')
}
