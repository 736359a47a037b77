package mcpserver

import (
	"mime"
	"net/http"
	"strings"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
)

// checkHeadersMatchBody checks that the headers match the body, because intermediaries route or decide by them.
// Modern requests must have them; in other requests they must match if present.
func checkHeadersMatchBody(h http.Header, m *message) *wirejson.RPCError {
	for _, name := range [...]string{mcp.HeaderVersion, mcp.HeaderMethod, mcp.HeaderName, mcp.HeaderSession} {
		if len(h[name]) > 1 {
			return newHeaderMismatchError(name + " is given more than once")
		}
	}
	required := m.modern && m.IsRequest()
	if bad := checkVersionAndMeta(h, m, required); bad != nil {
		return bad
	}
	switch method, given := headerValue(h, mcp.HeaderMethod); {
	case !given && required:
		return newHeaderMismatchError(mcp.HeaderMethod + " is missing")
	case given && method != m.Method:
		return newHeaderMismatchError(mcp.HeaderMethod + " header value " + session.QuoteClipped(method) + " does not match body value " + session.QuoteClipped(m.Method))
	}
	return checkNameHeader(h, m, required)
}

// checkVersionAndMeta checks the protocol version and capabilities of a modern request.
func checkVersionAndMeta(h http.Header, m *message, required bool) *wirejson.RPCError {
	given, is := headerValue(h, mcp.HeaderVersion)
	version, isText := wirejson.String(m.meta.Version)
	switch {
	case m.meta.Version != nil && !isText:
	case m.meta.Version == nil && required && is && given != mcp.Modern:
		return newUnsupportedVersionError(given)
	case m.meta.Version == nil && required:
		return session.InvalidParamsError("_meta." + mcp.MetaVersion + " is required")
	case !is && required:
		return newHeaderMismatchError("MCP-Protocol-Version is missing")
	case is && isText && given != version:
		return newHeaderMismatchError("MCP-Protocol-Version header value " + session.QuoteClipped(given) + " does not match body value " + session.QuoteClipped(version))
	}
	return m.checkMeta()
}

// checkNameHeader checks Mcp-Name, which repeats the subject of a request.
func checkNameHeader(h http.Header, m *message, required bool) *wirejson.RPCError {
	given, is := headerValue(h, mcp.HeaderName)
	if !is && !required {
		return nil
	}
	body, about, bad := m.targetName(is)
	if !about || bad != nil {
		return bad
	}
	// For tasks the specification does not say whether it is required.
	if !is && !m.isTaskMethod() {
		return newHeaderMismatchError(mcp.HeaderName + " is missing")
	}
	if !is {
		return nil
	}
	decoded, ok := mcp.DecodeHeaderValue(given)
	switch {
	case !ok:
		return newHeaderMismatchError(mcp.HeaderName + " header value has invalid characters or a broken =?base64?…?= encoding")
	case decoded != body:
		return newHeaderMismatchError(mcp.HeaderName + " header value " + session.QuoteClipped(decoded) + " does not match body value " + session.QuoteClipped(body))
	}
	return nil
}

// headerValue returns a header, which may be missing. name is canonical.
func headerValue(h http.Header, name string) (value string, given bool) {
	if values := h[name]; len(values) > 0 {
		return values[0], true
	}
	return "", false
}

// headersRepeatingBody returns the headers that repeat the body, for servers that check them.
func headersRepeatingBody(h http.Header) []mcp.Header {
	var fields []mcp.Header
	for name, values := range h {
		if name == mcp.HeaderMethod || name == mcp.HeaderName || strings.HasPrefix(name, mcp.HeaderParam) {
			fields = append(fields, mcp.Header{Name: name, Value: values[0]})
		}
	}
	return fields
}

func newHeaderMismatchError(what string) *wirejson.RPCError {
	return &wirejson.RPCError{Code: mcp.CodeHeaderMismatch, Message: "Header mismatch: " + what}
}

// hasJSONBody reports whether the body is declared as plain JSON. A web page can send other types across
// origins without a preflight.
func hasJSONBody(h http.Header) bool {
	if enc, _ := headerValue(h, "Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
		return false
	}
	types := h["Content-Type"]
	if len(types) != 1 {
		return false
	}
	if types[0] == "application/json" {
		return true
	}
	kind, _, err := mime.ParseMediaType(types[0])
	return err == nil && kind == "application/json"
}

// acceptedReplyKinds returns which kinds of reply the client accepts. Without a usable Accept header it is plain
// JSON.
func acceptedReplyKinds(h http.Header) (plain, stream bool) {
	values := h["Accept"]
	for _, v := range values {
		all := strings.Contains(v, "*/*")
		plain = plain || all || strings.Contains(v, "application/json") || strings.Contains(v, "application/*")
		stream = stream || strings.Contains(v, "text/event-stream") || strings.Contains(v, "text/*")
	}
	return plain || !stream, stream
}
