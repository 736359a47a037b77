package compat

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/upstream"
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
	return session.Reply{Error: &wirejson.RPCError{Code: wirejson.CodeMethodNotFound, Message: "Method not found: " + method + why}}
}

// refusedParams returns the reply of a request whose params are not right.
func refusedParams(what string) session.Reply {
	return session.Reply{Error: &wirejson.RPCError{Code: wirejson.CodeInvalidParams, Message: "Invalid params: " + what}}
}

// internalError returns the reply of a request that cannot be gone on with.
func internalError(why string) session.Reply {
	return session.Reply{Error: &wirejson.RPCError{Code: wirejson.CodeInternal, Message: why}}
}

// orObject returns a copy of raw, or an empty object where it is none.
func orObject(raw json.RawMessage) json.RawMessage {
	if wirejson.Kind(raw) != '{' {
		return json.RawMessage("{}")
	}
	return bytes.Clone(raw)
}

// field is a member of an object. Without a value it is left out.
type field struct {
	name  string
	value json.RawMessage
}

// object returns the object with these members, as they are and in this order.
func object(members ...field) json.RawMessage {
	out := []byte{'{'}
	for _, m := range members {
		if m.value == nil {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(wirejson.AppendString(out, m.name), ':'), m.value...)
	}
	return append(out, '}')
}

// text returns s as JSON.
func text(s string) json.RawMessage { return wirejson.AppendString(nil, s) }

// resource returns the params that name a resource.
func resource(uri string) json.RawMessage { return object(field{"uri", text(uri)}) }

// instructions returns the member that holds what a server has its clients do.
func instructions(g *upstream.Greeting) field {
	if g.Instructions == "" {
		return field{}
	}
	return field{"instructions", text(g.Instructions)}
}

// uris are the addresses of resources to which a client has subscribed.
type uris map[string]bool

// set enters a subscription, or takes it out; false when there are too many.
func (u uris) set(uri string, on bool) bool {
	if !on {
		delete(u, uri)
		return true
	}
	size := len(uri)
	for one := range u {
		size += len(one)
	}
	if !u[uri] && (len(u) >= maxSubscriptions || size > maxSubscribedBytes) {
		return false
	}
	u[uri] = true
	return true
}

// lists are the lists of which a server may say that they have changed.
var lists = [...]struct{ kind, method, wish string }{
	{"tools", mcp.ToolsChanged, "toolsListChanged"},
	{"prompts", mcp.PromptsChanged, "promptsListChanged"},
	{"resources", mcp.ResourcesChanged, "resourcesListChanged"},
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
