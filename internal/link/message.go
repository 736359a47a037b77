package link

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"unicode/utf8"

	"mcpproxy/internal/jsonrpc"
	"mcpproxy/internal/rawjson"
	"mcpproxy/internal/session"
)

// split hands on the messages of a text: one, or those of a batch, which servers
// of 2025-03-26 may send. What is no UTF-8 in it, which JSON does not allow, is
// replaced, so that everything that is passed on can be read by everybody.
func split(data []byte, each func(jsonrpc.Message)) error {
	data = validUTF8(data)
	if len(data) == 0 || data[0] != '[' {
		m, err := jsonrpc.Parse(data)
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
		m, err := jsonrpc.Parse(item)
		if err != nil {
			bad = err
			continue
		}
		each(m)
	}
	return bad
}

// validUTF8 returns data itself when it is valid, which costs little to know.
func validUTF8(data []byte) []byte {
	if utf8.Valid(data) {
		return data
	}
	return bytes.ToValidUTF8(data, []byte("\ufffd"))
}

// cancelledBy returns the params that tell the server that the request id is no
// longer wanted: the client's, if it has said so itself.
func cancelledBy(ctx context.Context, id json.RawMessage) json.RawMessage {
	var c *session.Cancelled
	if errors.As(context.Cause(ctx), &c) && rawjson.Kind(c.Params) == '{' {
		return rawjson.SetMember(c.Params, "requestId", id)
	}
	b := append([]byte(`{"requestId":`), id...)
	return append(b, `,"reason":"the caller no longer waits"}`...)
}
