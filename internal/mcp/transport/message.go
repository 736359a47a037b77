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

// split parses one message, or those of a batch (2025-03-26), and passes each on. Invalid UTF-8 is
// replaced, so that every client can read the forwarded text.
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

// withoutMark removes a byte order mark.
func withoutMark(data []byte) []byte { return bytes.TrimPrefix(data, []byte("\ufeff")) }

// validUTF8 returns data itself if it is valid.
func validUTF8(data []byte) []byte {
	if utf8.Valid(data) {
		return data
	}
	return bytes.ToValidUTF8(data, []byte("\ufffd"))
}

// cancelled returns the cancel notification for request id, with the client's params if it sent one.
func cancelled(ctx context.Context, id json.RawMessage) []byte {
	params := json.RawMessage(`{"requestId":0,"reason":"the caller no longer waits"}`)
	if c, ok := errors.AsType[*session.Cancelled](context.Cause(ctx)); ok && wirejson.Kind(c.Params) == '{' {
		params = c.Params
	}
	return wirejson.AppendNotification(nil, mcp.Cancelled, wirejson.SetMember(params, "requestId", id))
}

// owned returns the data of a reader, and whether the caller owns it: large data takes over its buffer.
func owned(data []byte, r interface{ Keep() []byte }) (out []byte, kept bool) {
	if len(data) < keepFrom {
		return data, false
	}
	return r.Keep(), true
}

// bounded maps a reader's error to a Budget error.
func bounded(b *Budget, err error) error {
	switch {
	case errors.Is(err, wirejson.ErrTooLong):
		return b.TooLarge()
	case errors.Is(err, wirejson.ErrNoBuffer):
		return b.OverBudget()
	}
	return err
}
