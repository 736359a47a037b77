package adapt

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"mcpproxy/internal/jsonrpc"
	"mcpproxy/internal/rawjson"
	"mcpproxy/internal/session"
)

// Bounds on what is kept for one client.
const (
	maxKept            = 256 // events while it does not listen
	maxKeptBytes       = 1 << 20
	maxSubscriptions   = 1000
	maxSubscribedBytes = 1 << 20 // of their addresses
)

// empty returns the reply of a request that has no result.
func empty() session.Reply { return session.Reply{Result: json.RawMessage("{}")} }

// unknown returns the reply of a request that is not known here.
func unknown(method, why string) session.Reply {
	return session.Reply{Error: &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "Method not found: " + method + why}}
}

// refusedParams returns the reply of a request whose params are not right.
func refusedParams(what string) session.Reply {
	return session.Reply{Error: &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "Invalid params: " + what}}
}

// internalError returns the reply of a request that cannot be gone on with.
func internalError(why string) session.Reply {
	return session.Reply{Error: &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: why}}
}

// orObject returns a copy of raw, or an empty object where it is none.
func orObject(raw json.RawMessage) json.RawMessage {
	if rawjson.Kind(raw) != '{' {
		return json.RawMessage("{}")
	}
	return bytes.Clone(raw)
}

// object returns an object with one member, which is a text.
func object(name, text string) json.RawMessage {
	return append(rawjson.AppendString(append(rawjson.AppendString([]byte{'{'}, name), ':'), text), '}')
}

// roomFor reports whether a client may subscribe to one more resource.
func roomFor(uris map[string]bool, uri string) bool {
	size := len(uri)
	for one := range uris {
		size += len(one)
	}
	return uris[uri] || len(uris) < maxSubscriptions && size <= maxSubscribedBytes
}

// pause waits, unless ctx ends before.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
