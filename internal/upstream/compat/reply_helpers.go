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

// Bounds per client.
const (
	maxQueuedEvents    = 256 // events while it does not listen
	maxQueuedBytes     = 1 << 20
	maxSubscriptions   = 1000
	maxSubscribedBytes = 1 << 20 // of their URIs
)

// emptyReply returns an empty result.
func emptyReply() session.Reply { return session.Reply{Result: json.RawMessage("{}")} }

// unknownMethodReply returns "method not found".
func unknownMethodReply(method, why string) session.Reply {
	return session.Reply{Error: &wirejson.RPCError{Code: wirejson.CodeMethodNotFound, Message: "Method not found: " + method + why}}
}

// invalidParamsReply returns "invalid params".
func invalidParamsReply(what string) session.Reply {
	return session.Reply{Error: &wirejson.RPCError{Code: wirejson.CodeInvalidParams, Message: "Invalid params: " + what}}
}

// internalErrorReply returns "internal error".
func internalErrorReply(why string) session.Reply {
	return session.Reply{Error: &wirejson.RPCError{Code: wirejson.CodeInternal, Message: why}}
}

// cloneObjectOrEmpty returns a copy of raw, or an empty object if raw is not an object.
func cloneObjectOrEmpty(raw json.RawMessage) json.RawMessage {
	if wirejson.Kind(raw) != '{' {
		return json.RawMessage("{}")
	}
	return bytes.Clone(raw)
}

// jsonField is a member of an object. Without a value it is omitted.
type jsonField struct {
	name  string
	value json.RawMessage
}

// newJSONObject returns an object with these members in this order.
func newJSONObject(members ...jsonField) json.RawMessage {
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

// encodeJSONString returns s as JSON.
func encodeJSONString(s string) json.RawMessage { return wirejson.AppendString(nil, s) }

// resourceParams returns the params for a resource URI.
func resourceParams(uri string) json.RawMessage {
	return newJSONObject(jsonField{"uri", encodeJSONString(uri)})
}

// instructionsField returns the member with a server's instructions.
func instructionsField(g *upstream.HandshakeResult) jsonField {
	if g.Instructions == "" {
		return jsonField{}
	}
	return jsonField{"instructions", encodeJSONString(g.Instructions)}
}

// resourceSubscriptions are the resource URIs that a client is subscribed to.
type resourceSubscriptions map[string]bool

// setSubscribed adds or removes a subscription; false when there are too many.
func (u resourceSubscriptions) setSubscribed(uri string, on bool) bool {
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

// listNotifications are the list_changed notifications.
var listNotifications = [...]struct{ kind, method, wish string }{
	{"tools", mcp.ToolsChanged, "toolsListChanged"},
	{"prompts", mcp.PromptsChanged, "promptsListChanged"},
	{"resources", mcp.ResourcesChanged, "resourcesListChanged"},
}

// sleepContext waits for d or until ctx ends.
func sleepContext(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
