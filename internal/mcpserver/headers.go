package mcpserver

import (
	"net/http"
	"strings"

	"mcpproxy/internal/jsonrpc"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/rawjson"
	"mcpproxy/internal/reply"
	"mcpproxy/internal/session"
)

// checkHeaders holds the headers against the body: who routes or judges by the
// headers must not be told anything else. A modern request has to carry them;
// where others carry them, they have to be true as well.
func (x *request) checkHeaders() *jsonrpc.Error {
	for _, name := range [...]string{mcp.HeaderVersion, mcp.HeaderMethod, mcp.HeaderName, mcp.HeaderSession} {
		if len(x.r.Header[name]) > 1 {
			return mismatch(name + " is given more than once")
		}
	}
	required := x.modern && x.IsRequest()
	if bad := x.checkVersion(required); bad != nil {
		return bad
	}
	switch method, given := x.header(mcp.HeaderMethod); {
	case !given && required:
		return mismatch(mcp.HeaderMethod + " is missing")
	case given && method != x.Method:
		return mismatch(mcp.HeaderMethod + " header value " + reply.Quote(method) + " does not match body value " + reply.Quote(x.Method))
	}
	return x.checkName(required)
}

// checkVersion checks what a modern request says about itself.
func (x *request) checkVersion(required bool) *jsonrpc.Error {
	header, given := x.header(mcp.HeaderVersion)
	version, isText := rawjson.String(x.meta.Version)
	switch {
	case x.meta.Version != nil && !isText:
		return reply.InvalidParams("_meta." + mcp.MetaVersion + " must be a string")
	case x.meta.Version == nil && required && given && header != mcp.Modern:
		return unsupportedVersion(header)
	case x.meta.Version == nil && required:
		return reply.InvalidParams("_meta." + mcp.MetaVersion + " is required")
	case !given && required:
		return mismatch("MCP-Protocol-Version is missing")
	case given && isText && header != version:
		return mismatch("MCP-Protocol-Version header value " + reply.Quote(header) + " does not match body value " + reply.Quote(version))
	case !required:
		return nil
	case version != mcp.Modern:
		return unsupportedVersion(version)
	case x.meta.Capabilities == nil:
		return reply.InvalidParams("_meta." + mcp.MetaCapabilities + " is required")
	case rawjson.Kind(x.meta.Capabilities) != '{':
		return reply.InvalidParams("_meta." + mcp.MetaCapabilities + " must be an object")
	}
	return nil
}

// checkName checks Mcp-Name, which mirrors what a request is about. Of tasks the
// specification does not say what follows when it is missing: their server may.
func (x *request) checkName(required bool) *jsonrpc.Error {
	member := "name"
	switch x.Method {
	case mcp.CallTool, mcp.GetPrompt:
	case mcp.ReadResource:
		member = "uri"
	case mcp.GetTask, mcp.UpdateTask, mcp.CancelTask:
		member, required = "taskId", false
	default:
		return nil
	}
	body, isText := rawjson.String(x.param(member))
	header, given := x.header(mcp.HeaderName)
	switch {
	case !isText && (required || given):
		return reply.InvalidParams("params." + member + " must be a string")
	case !given && required:
		return mismatch(mcp.HeaderName + " is missing")
	case !given:
		return nil
	}
	decoded, ok := mcp.PlainHeader(header)
	switch {
	case !ok:
		return mismatch(mcp.HeaderName + " header value has invalid characters or a broken =?base64?…?= encoding")
	case decoded != body:
		return mismatch(mcp.HeaderName + " header value " + reply.Quote(decoded) + " does not match body value " + reply.Quote(body))
	}
	return nil
}

func (x *request) header(name string) (value string, given bool) {
	if values := x.r.Header[name]; len(values) > 0 {
		return values[0], true
	}
	return "", false
}

// mirroredHeaders are the headers that say what the body says: a server that
// checks them needs them.
func mirroredHeaders(h http.Header) []session.Field {
	var fields []session.Field
	for name, values := range h {
		if name == mcp.HeaderMethod || name == mcp.HeaderName || strings.HasPrefix(name, mcp.HeaderParam) {
			fields = append(fields, session.Field{Name: name, Value: values[0]})
		}
	}
	return fields
}

// appendHead puts the header lines of a server's answer into ours. What
// MCPProxy says itself stays as it is.
func appendHead(h http.Header, fields []session.Field) {
	for i, f := range fields {
		named := func(other session.Field) bool { return strings.EqualFold(other.Name, f.Name) }
		name := http.CanonicalHeaderKey(f.Name)
		if h[name] != nil {
			continue
		}
		var values []string
		for _, other := range fields[i:] {
			if named(other) {
				values = append(values, other.Value)
			}
		}
		h[name] = values
	}
}

func mismatch(what string) *jsonrpc.Error {
	return &jsonrpc.Error{Code: mcp.CodeHeaderMismatch, Message: "Header mismatch: " + what}
}

func unsupportedVersion(requested string) *jsonrpc.Error {
	data := append([]byte(`{"supported":`), mcp.Served...)
	data = append(data, `,"requested":`...)
	data = rawjson.AppendString(data, rawjson.Clip(requested, reply.MaxIdentity))
	return &jsonrpc.Error{Code: mcp.CodeUnsupportedVersion, Message: "Unsupported protocol version", Data: append(data, '}')}
}
