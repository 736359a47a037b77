package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"mcpproxy/internal/jsonrpc"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/rawjson"
)

// Some tools of the modern era want arguments repeated in headers. A client on
// stdin has no headers, and need not know of them: the bridge adds them.

// Bounds on what is learned about that.
const (
	maxMirroring = 256 // definitions that are kept
	maxListPages = 100
)

// mirror sets the headers that the called tool is known to want.
func (b *bridge) mirror(msg *message) {
	name := msg.tool()
	if name == "" {
		return
	}
	b.mu.Lock()
	definition := b.mirroring[name]
	b.mu.Unlock()
	msg.mirrors = mcp.Mirrored(definition, rawjson.Find(msg.Params, "arguments"))
}

// wantsMirrors says whether a call was refused, unseen by the server, because
// of its headers.
func wantsMirrors(msg *message, answer []byte) bool {
	if msg.tool() == "" || !bytes.Contains(answer, strconv.AppendInt(nil, mcp.CodeHeaderMismatch, 10)) {
		return false
	}
	m, err := jsonrpc.Parse(answer)
	return err == nil && m.Error != nil && m.Error.Code == mcp.CodeHeaderMismatch
}

// learn looks up the definition of the called tool, in the name of the client
// that called it, and says whether it was found.
func (b *bridge) learn(ctx context.Context, msg *message) bool {
	name := msg.tool()
	meta := rawjson.Find(msg.Params, "_meta")
	cursor := json.RawMessage(nil)
	for range maxListPages {
		params := rawjson.SetMember(nil, "_meta", meta)
		if cursor != nil {
			params = rawjson.SetMember(params, "cursor", cursor)
		}
		list := &message{version: msg.version, Message: jsonrpc.Message{ID: msg.ID, Method: mcp.ListTools, Params: params}}
		list.body = fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":"tools/list","params":%s}`, msg.ID, params)
		answer, err := b.ask(ctx, list)
		if err != nil {
			return false
		}
		m, err := jsonrpc.Parse(answer)
		if err != nil || m.Result == nil {
			return false
		}
		if definition := definitionOf(name, rawjson.Find(m.Result, "tools")); definition != nil {
			b.keepMirroring(name, definition)
			return true
		}
		if cursor = rawjson.Find(m.Result, "nextCursor"); rawjson.Kind(cursor) != '"' {
			return false
		}
	}
	return false
}

// definitionOf finds the tool of that name in a list.
func definitionOf(name string, tools json.RawMessage) json.RawMessage {
	var found json.RawMessage
	_ = rawjson.Elements(tools, func(definition []byte) error { // what is no list has no tool
		if text, ok := rawjson.String(rawjson.Find(definition, "name")); ok && text == name && found == nil {
			found = bytes.Clone(definition)
		}
		return nil
	})
	return found
}

func (b *bridge) keepMirroring(name string, definition json.RawMessage) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.mirroring) >= maxMirroring {
		clear(b.mirroring) // what is called again is looked up again
	}
	b.mirroring[name] = definition
}
