package compat

import (
	"bytes"
	"encoding/json"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/upstream"
)

// described returns what server/discover says of a legacy server.
func described(g *upstream.Greeting) json.RawMessage {
	capabilities := wirejson.DropMember(orObject(g.Capabilities), "tasks")
	return modernResult(mcp.Discover, object(field{"supportedVersions", json.RawMessage(mcp.SupportedVersions)}, field{"capabilities", capabilities}, instructions(g)), g)
}

// modernResult adds to a result what the modern revision demands.
func modernResult(method string, result json.RawMessage, g *upstream.Greeting) json.RawMessage {
	if wirejson.Kind(result) != '{' {
		return result
	}
	add := func(name, value string) {
		if wirejson.Find(result, name) == nil {
			result = wirejson.SetMember(result, name, json.RawMessage(value))
		}
	}
	add("resultType", `"complete"`)
	switch method {
	case mcp.Discover, mcp.ListTools, mcp.ListPrompts, mcp.ListResources, mcp.ListTemplates, mcp.ReadResource:
		add("ttlMs", "0")
		add("cacheScope", `"private"`)
	}
	meta := wirejson.Find(result, "_meta")
	if wirejson.Kind(g.Info) == '{' && wirejson.Find(meta, mcp.MetaServerInfo) == nil {
		result = wirejson.SetMember(result, "_meta", wirejson.SetMember(orObject(meta), mcp.MetaServerInfo, g.Info))
	}
	return result
}

// modernError returns an error in the codes of the modern revision.
func modernError(e *wirejson.RPCError) *wirejson.RPCError {
	if e.Code == mcp.CodeResourceNotFound {
		return &wirejson.RPCError{Code: wirejson.CodeInvalidParams, Message: e.Message, Data: e.Data}
	}
	return e
}

// about is what a modern request says of itself.
type about struct {
	params             json.RawMessage // without it
	capabilities, info json.RawMessage
	level              string
}

func aboutOf(params json.RawMessage) about {
	a := about{params: params, capabilities: json.RawMessage("{}")}
	meta, err := mcp.SplitMeta(wirejson.Find(params, "_meta"))
	if err != nil {
		return a
	}
	if meta.Capabilities != nil {
		a.capabilities = wirejson.DropMember(orObject(meta.Capabilities), "tasks")
	}
	a.info = bytes.Clone(meta.ClientInfo)
	a.level, _ = wirejson.String(meta.LogLevel)
	a.params = wirejson.SetMember(wirejson.DropMember(params, "task"), "_meta", orObject(meta.Rest))
	return a
}

// canAsk reports whether the client can be asked something.
func (a *about) canAsk() bool { return string(a.capabilities) != "{}" }

// mayAsk reports whether the server may ask something before it answers: the
// others are made without capabilities, so that it does not. But what a server
// lists may depend on them, so lists are made with those of the client, and what
// is asked then is refused.
func mayAsk(method string) bool {
	return method == mcp.CallTool || method == mcp.GetPrompt || method == mcp.ReadResource
}

// isLegacyMethod reports whether the legacy revisions have a method that requests
// of the modern one may use.
func isLegacyMethod(method string) bool {
	switch method {
	case mcp.ListTools, mcp.ListPrompts, mcp.ListResources, mcp.ListTemplates, mcp.Complete:
		return true
	}
	return mayAsk(method)
}

// principal returns who makes a request: what was begun for one is gone on with
// for nobody else.
func principal(r *session.Request) string {
	if r.Caller == nil {
		return ""
	}
	return r.Caller.Actor.Principal()
}

// sameRequest reports whether two params ask for the same.
func sameRequest(a, b json.RawMessage) bool {
	for _, name := range []string{"name", "uri", "arguments"} {
		if !sameJSON(wirejson.Find(a, name), wirejson.Find(b, name)) {
			return false
		}
	}
	return true
}

func sameJSON(a, b json.RawMessage) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	var x, y bytes.Buffer
	return bytes.Equal(a, b) || json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}
