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

// split hands on the messages of a text: one, or those of a batch, which servers
// of 2025-03-26 may send. What is no UTF-8 in it, which JSON does not allow, is
// replaced, so that everything that is passed on can be read by everybody.
func split(data []byte, each func(wirejson.Message)) error {
	data = validUTF8(withoutMark(data))
	if len(data) == 0 || data[0] != '[' {
		m, err := wirejson.Parse(data)
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
		m, err := wirejson.Parse(item)
		if err != nil {
			bad = err
			continue
		}
		each(m)
	}
	return bad
}

// withoutMark returns data without the byte order mark that some servers put before it.
func withoutMark(data []byte) []byte { return bytes.TrimPrefix(data, []byte("\ufeff")) }

// validUTF8 returns data itself when it is valid, which costs little to know.
func validUTF8(data []byte) []byte {
	if utf8.Valid(data) {
		return data
	}
	return bytes.ToValidUTF8(data, []byte("\ufffd"))
}

// cancelled returns the notification that the request id is no longer wanted, in
// the words of the client, if it has said so itself.
func cancelled(ctx context.Context, id json.RawMessage) []byte {
	params := json.RawMessage(`{"requestId":0,"reason":"the caller no longer waits"}`)
	if c, ok := errors.AsType[*session.Cancelled](context.Cause(ctx)); ok && wirejson.Kind(c.Params) == '{' {
		params = c.Params
	}
	return wirejson.AppendNotification(nil, mcp.Cancelled, wirejson.SetMember(params, "requestId", id))
}

// owned returns data that r has read, and reports whether its bytes can be kept:
// what is large is taken with its buffer.
func owned(data []byte, r interface{ Keep() []byte }) (out []byte, kept bool) {
	if len(data) < keepFrom {
		return data, false
	}
	return r.Keep(), true
}

// bounded returns what an error of a reader means: that a message is beyond a
// bound, or the error itself.
func bounded(b *Budget, err error) error {
	switch {
	case errors.Is(err, wirejson.ErrTooLong):
		return b.TooLarge()
	case errors.Is(err, wirejson.ErrCrowded):
		return b.Crowded()
	}
	return err
}
