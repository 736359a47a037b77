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

// eachMessage parses one message, or the messages of a batch (2025-03-26), and passes each to the callback. Invalid
// UTF-8 and lone surrogates are replaced, so that every client can read the forwarded text.
func eachMessage(data []byte, each func(wirejson.Message)) error {
	data = wirejson.ReplaceLoneSurrogates(toValidUTF8(trimByteOrderMark(data)))
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

// toValidUTF8 returns data with invalid UTF-8 replaced, or data itself if it is valid.
func toValidUTF8(data []byte) []byte {
	if utf8.Valid(data) {
		return data
	}
	return bytes.ToValidUTF8(data, []byte("\ufffd"))
}

// newCancelNotification returns the cancel notification for the request with this ID. It contains the client's params
// if the client sent one.
func newCancelNotification(ctx context.Context, id json.RawMessage) []byte {
	params := json.RawMessage(`{"requestId":0,"reason":"the caller no longer waits"}`)
	if c, ok := errors.AsType[*session.ClientCancelledError](context.Cause(ctx)); ok && wirejson.Kind(c.Params) == '{' {
		params = c.Params
	}
	return wirejson.AppendNotification(nil, mcp.Cancelled, wirejson.SetMember(params, "requestId", id))
}

// takeOwnership returns the data of a reader, and whether the caller owns it. Large data takes over its buffer.
func takeOwnership(data []byte, r interface{ TakeOwnershipOfLast() []byte }) (out []byte, kept bool) {
	if len(data) < keepFrom {
		return data, false
	}
	return r.TakeOwnershipOfLast(), true
}

// toBudgetError maps a reader's error to an error of the MemoryBudget.
func toBudgetError(b *MemoryBudget, err error) error {
	switch {
	case errors.Is(err, wirejson.ErrTooLong):
		return b.tooLargeErrorAndThrottle()
	case errors.Is(err, wirejson.ErrNoBuffer):
		return b.overBudgetError()
	}
	return err
}
