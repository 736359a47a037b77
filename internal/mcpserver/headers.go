package mcpserver

import (
	"encoding/base64"
	"net/http"
	"strings"

	"mcpproxy/internal/jsonrpc"
	"mcpproxy/internal/strictjson"
	"mcpproxy/internal/upstream"
)

// checkHeaders holds the headers against the body: who routes or judges by the
// headers must not be told anything else. A modern request has to carry them;
// where others carry them, they have to be true as well.
func (x *exchange) checkHeaders() *jsonrpc.Error {
	for _, name := range [...]string{headerVersion, headerMethod, headerName, headerSession} {
		if len(x.r.Header[name]) > 1 {
			return mismatch(name + " is given more than once")
		}
	}
	required := x.modern && x.msg.IsRequest()
	if bad := x.checkVersion(required); bad != nil {
		return bad
	}
	switch method, given := x.header(headerMethod); {
	case !given && required:
		return mismatch(headerMethod + " is missing")
	case given && method != x.msg.Method:
		return mismatch(headerMethod + " header value " + quote(method) + " does not match body value " + quote(x.msg.Method))
	}
	return x.checkName(required)
}

// checkVersion checks what a modern request says about itself.
func (x *exchange) checkVersion(required bool) *jsonrpc.Error {
	header, given := x.header(headerVersion)
	version, isText := strictjson.String(x.meta.version)
	switch {
	case x.meta.version != nil && !isText:
		return invalidParams("_meta." + metaVersion + " must be a string")
	case x.meta.version == nil && required && given && header != modernVersion:
		return unsupportedVersion(header)
	case x.meta.version == nil && required:
		return invalidParams("_meta." + metaVersion + " is required")
	case !given && required:
		return mismatch("MCP-Protocol-Version is missing")
	case given && isText && header != version:
		return mismatch("MCP-Protocol-Version header value " + quote(header) + " does not match body value " + quote(version))
	case !required:
		return nil
	case version != modernVersion:
		return unsupportedVersion(version)
	case x.meta.capabilities == nil:
		return invalidParams("_meta." + metaCapabilities + " is required")
	case strictjson.Kind(x.meta.capabilities) != '{':
		return invalidParams("_meta." + metaCapabilities + " must be an object")
	}
	return nil
}

// checkName checks Mcp-Name, which mirrors what a request is about. Of tasks the
// specification does not say what follows when it is missing: their server may.
func (x *exchange) checkName(required bool) *jsonrpc.Error {
	member, raw := "name", x.params.name
	switch x.msg.Method {
	case "tools/call", "prompts/get":
	case "resources/read":
		member, raw = "uri", x.params.uri
	case "tasks/get", "tasks/update", "tasks/cancel":
		member, raw, required = "taskId", x.params.taskID, false
	default:
		return nil
	}
	body, isText := strictjson.String(raw)
	header, given := x.header(headerName)
	switch {
	case !isText && (required || given):
		return invalidParams("params." + member + " must be a string")
	case !given && required:
		return mismatch(headerName + " is missing")
	case !given:
		return nil
	}
	decoded, ok := decodeHeader(header)
	switch {
	case !ok:
		return mismatch(headerName + " header value has invalid characters or a broken =?base64?…?= encoding")
	case decoded != body:
		return mismatch(headerName + " header value " + quote(decoded) + " does not match body value " + quote(body))
	}
	return nil
}

func (x *exchange) header(name string) (value string, given bool) {
	if values := x.r.Header[name]; len(values) > 0 {
		return values[0], true
	}
	return "", false
}

// decodeHeader undoes the encoding of header values that are not plain ASCII.
func decodeHeader(value string) (string, bool) {
	if encoded, ok := strings.CutPrefix(value, "=?base64?"); ok {
		if encoded, ok = strings.CutSuffix(encoded, "?="); ok {
			text, err := base64.StdEncoding.Strict().DecodeString(encoded)
			return string(text), err == nil
		}
	}
	for i := 0; i < len(value); i++ {
		if c := value[i]; c != '\t' && (c < ' ' || c > '~') {
			return "", false
		}
	}
	return value, true
}

// takeHead keeps what a server's answer has in its head for ours.
func (x *exchange) takeHead(fields []upstream.Field) { x.heads = fields }

// appendHead puts the header lines of a server's answer into ours. What
// MCPProxy says itself stays as it is.
func appendHead(h http.Header, fields []upstream.Field) {
	for i, f := range fields {
		named := func(other upstream.Field) bool { return strings.EqualFold(other.Name, f.Name) }
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
	return &jsonrpc.Error{Code: jsonrpc.CodeHeaderMismatch, Message: "Header mismatch: " + what}
}

func invalidParams(what string) *jsonrpc.Error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "Invalid params: " + what}
}

func unsupportedVersion(requested string) *jsonrpc.Error {
	data := append([]byte(`{"supported":`), versionList...)
	data = append(data, `,"requested":`...)
	data = appendText(data, []byte(bounded(requested, maxIdentity)))
	return &jsonrpc.Error{Code: jsonrpc.CodeUnsupportedVersion, Message: "Unsupported protocol version", Data: append(data, '}')}
}

// quote repeats what a client sent, bounded.
func quote(s string) string {
	const most = 100
	if len(s) > most {
		s = bounded(s, most) + "…"
	}
	return "'" + s + "'"
}
