package compat

import (
	"bytes"
	"encoding/json"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/upstream"
)

// newDiscoverResult returns the server/discover result for a legacy server.
func newDiscoverResult(g *upstream.HandshakeResult) json.RawMessage {
	capabilities := wirejson.DropMember(cloneObjectOrEmpty(g.Capabilities), "tasks")
	return toModernResult(mcp.Discover, newJSONObject(jsonField{"supportedVersions", json.RawMessage(mcp.SupportedVersions)}, jsonField{"capabilities", capabilities}, instructionsField(g)), g)
}

// toModernResult adds the members that the modern protocol requires to a result.
func toModernResult(method string, result json.RawMessage, g *upstream.HandshakeResult) json.RawMessage {
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
		result = wirejson.SetMember(result, "_meta", wirejson.SetMember(cloneObjectOrEmpty(meta), mcp.MetaServerInfo, g.Info))
	}
	return result
}

// toModernError converts error codes to the modern protocol.
func toModernError(e *wirejson.RPCError) *wirejson.RPCError {
	if e.Code == mcp.CodeResourceNotFound {
		return &wirejson.RPCError{Code: wirejson.CodeInvalidParams, Message: e.Message, Data: e.Data}
	}
	return e
}

// requestMeta is the metadata of a modern request.
type requestMeta struct {
	params             json.RawMessage // without the metadata
	capabilities, info json.RawMessage
	level              string
}

func parseRequestMeta(params json.RawMessage) requestMeta {
	a := requestMeta{params: params, capabilities: json.RawMessage("{}")}
	meta, err := mcp.SplitRequestMeta(wirejson.Find(params, "_meta"))
	if err != nil {
		return a
	}
	if meta.Capabilities != nil {
		a.capabilities = wirejson.DropMember(cloneObjectOrEmpty(meta.Capabilities), "tasks")
	}
	a.info = bytes.Clone(meta.ClientInfo)
	a.level, _ = wirejson.String(meta.LogLevel)
	a.params = wirejson.SetMember(wirejson.DropMember(params, "task"), "_meta", cloneObjectOrEmpty(meta.Rest))
	return a
}

// canBeAsked reports whether the client declares any capability.
func (a *requestMeta) canBeAsked() bool { return string(a.capabilities) != "{}" }

// allowsServerRequests reports whether the server may send requests before it responds. Other
// requests are made without client capabilities, so that it does not. Lists are made with
// them, because a list may depend on them, and questions are rejected.
func allowsServerRequests(method string) bool {
	return method == mcp.CallTool || method == mcp.GetPrompt || method == mcp.ReadResource
}

// isAllowedLegacyMethod reports whether modern requests may use that legacy method.
func isAllowedLegacyMethod(method string) bool {
	switch method {
	case mcp.ListTools, mcp.ListPrompts, mcp.ListResources, mcp.ListTemplates, mcp.Complete:
		return true
	}
	return allowsServerRequests(method)
}

// callerPrincipal returns the principal of a request. A principal cannot continue a request of another one.
func callerPrincipal(r *session.Request) string {
	if r.Caller == nil {
		return ""
	}
	return r.Caller.Actor.Principal()
}

// isSameRequest reports whether two params request the same.
func isSameRequest(a, b json.RawMessage) bool {
	for _, name := range []string{"name", "uri", "arguments"} {
		if !isSameJSON(wirejson.Find(a, name), wirejson.Find(b, name)) {
			return false
		}
	}
	return true
}

func isSameJSON(a, b json.RawMessage) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	var x, y bytes.Buffer
	return bytes.Equal(a, b) || json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}
