package transport

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"unicode/utf8"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
)

// eachMessage parses one message, or those of a batch (2025-03-26), and passes each on. Invalid UTF-8 and halves of
// surrogate pairs are replaced, so that every client can read the forwarded text.
func eachMessage(data []byte, each func(wirejson.Message)) error {
	data = replaceLoneSurrogates(toValidUTF8(trimByteOrderMark(data)))
	if len(data) == 0 || data[0] != '[' {
		m, err := wirejson.ParseServerMessage(data)
		if err != nil {
			return err
		}
		each(m)
		return nil
	}
	var batch []json.RawMessage
	if err := json.Unmarshal(data, &batch); err != nil {
		return err
	}
	var bad error
	for _, item := range batch {
		m, err := wirejson.ParseServerMessage(item)
		if err != nil {
			bad = err
			continue
		}
		each(m)
	}
	return bad
}

// trimByteOrderMark removes a byte order mark.
func trimByteOrderMark(data []byte) []byte { return bytes.TrimPrefix(data, []byte("\ufeff")) }

// toValidUTF8 returns data itself if it is valid.
func toValidUTF8(data []byte) []byte {
	if utf8.Valid(data) {
		return data
	}
	return bytes.ToValidUTF8(data, []byte("\ufffd"))
}

// replaceLoneSurrogates returns a JSON text without escapes of only half a surrogate pair, as of text that was cut in
// the middle of a character; data itself if it has none. Some parsers reject a text with one.
func replaceLoneSurrogates(data []byte) []byte {
	if !bytes.Contains(data, []byte(`\ud`)) && !bytes.Contains(data, []byte(`\uD`)) {
		return data
	}
	half := func(at int) byte { // 'h' for the first half of a pair, 'l' for the second one, else 0
		if at+6 > len(data) || data[at] != '\\' || data[at+1] != 'u' || data[at+2]|0x20 != 'd' {
			return 0
		}
		switch c := data[at+3] | 0x20; {
		case data[at+3] == '8' || data[at+3] == '9' || c == 'a' || c == 'b':
			return 'h'
		case 'c' <= c && c <= 'f':
			return 'l'
		}
		return 0
	}
	out := data
	for i := 0; i+1 < len(data); {
		next := bytes.IndexByte(data[i:], '\\')
		if next < 0 {
			break
		}
		i += next
		switch first := half(i); {
		case first == 0:
			i += 2
		case first == 'h' && half(i+6) == 'l':
			i += 12
		default:
			if &out[0] == &data[0] {
				out = bytes.Clone(data)
			}
			copy(out[i:], `\ufffd`)
			i += 6
		}
	}
	return out
}

// newCancelNotification returns the cancel notification for request id, with the client's params if it sent one.
func newCancelNotification(ctx context.Context, id json.RawMessage) []byte {
	params := json.RawMessage(`{"requestId":0,"reason":"the caller no longer waits"}`)
	if c, ok := errors.AsType[*session.ClientCancelledError](context.Cause(ctx)); ok && wirejson.Kind(c.Params) == '{' {
		params = c.Params
	}
	return wirejson.AppendNotification(nil, mcp.Cancelled, wirejson.SetMember(params, "requestId", id))
}

// takeOwnership returns the data of a reader, and whether the caller owns it: large data takes over its buffer.
func takeOwnership(data []byte, r interface{ TakeOwnershipOfLast() []byte }) (out []byte, kept bool) {
	if len(data) < keepFrom {
		return data, false
	}
	return r.TakeOwnershipOfLast(), true
}

// toBudgetError maps a reader's error to a Budget error.
func toBudgetError(b *MemoryBudget, err error) error {
	switch {
	case errors.Is(err, wirejson.ErrTooLong):
		return b.TooLargeErrorAndThrottle()
	case errors.Is(err, wirejson.ErrNoBuffer):
		return b.OverBudgetError()
	}
	return err
}
