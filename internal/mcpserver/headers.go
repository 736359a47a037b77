package mcpserver

import (
	"mime"
	"net/http"
	"strings"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
)

// checkHeaders holds the headers against the body: who routes or judges by the
// headers must not be told anything else. A modern request has to carry them;
// where others carry them, they have to be true as well.
func checkHeaders(h http.Header, m *message) *wirejson.RPCError {
	for _, name := range [...]string{mcp.HeaderVersion, mcp.HeaderMethod, mcp.HeaderName, mcp.HeaderSession} {
		if len(h[name]) > 1 {
			return mismatch(name + " is given more than once")
		}
	}
	required := m.modern && m.IsRequest()
	if bad := checkVersion(h, m, required); bad != nil {
		return bad
	}
	switch method, given := header(h, mcp.HeaderMethod); {
	case !given && required:
		return mismatch(mcp.HeaderMethod + " is missing")
	case given && method != m.Method:
		return mismatch(mcp.HeaderMethod + " header value " + session.QuoteText(method) + " does not match body value " + session.QuoteText(m.Method))
	}
	return checkName(h, m, required)
}

// checkVersion checks what a modern request says about itself.
func checkVersion(h http.Header, m *message, required bool) *wirejson.RPCError {
	given, is := header(h, mcp.HeaderVersion)
	version, isText := wirejson.String(m.meta.Version)
	switch {
	case m.meta.Version != nil && !isText:
	case m.meta.Version == nil && required && is && given != mcp.Modern:
		return unsupportedVersion(given)
	case m.meta.Version == nil && required:
		return session.InvalidParams("_meta." + mcp.MetaVersion + " is required")
	case !is && required:
		return mismatch("MCP-Protocol-Version is missing")
	case is && isText && given != version:
		return mismatch("MCP-Protocol-Version header value " + session.QuoteText(given) + " does not match body value " + session.QuoteText(version))
	}
	return m.checkMeta()
}

// checkName checks Mcp-Name, which mirrors what a request is about.
func checkName(h http.Header, m *message, required bool) *wirejson.RPCError {
	given, is := header(h, mcp.HeaderName)
	if !is && !required {
		return nil
	}
	body, about, bad := m.subject(is)
	if !about || bad != nil {
		return bad
	}
	// Of tasks the specification does not say what follows when it is missing:
	// their server may.
	if !is && !m.ofTask() {
		return mismatch(mcp.HeaderName + " is missing")
	}
	if !is {
		return nil
	}
	decoded, ok := mcp.PlainHeader(given)
	switch {
	case !ok:
		return mismatch(mcp.HeaderName + " header value has invalid characters or a broken =?base64?…?= encoding")
	case decoded != body:
		return mismatch(mcp.HeaderName + " header value " + session.QuoteText(decoded) + " does not match body value " + session.QuoteText(body))
	}
	return nil
}

// header returns the value of a header, which may be missing. Its name is spelled
// as net/http spells it.
func header(h http.Header, name string) (value string, given bool) {
	if values := h[name]; len(values) > 0 {
		return values[0], true
	}
	return "", false
}

// mirroredHeaders are the headers that say what the body says: a server that
// checks them needs them.
func mirroredHeaders(h http.Header) []mcp.Field {
	var fields []mcp.Field
	for name, values := range h {
		if name == mcp.HeaderMethod || name == mcp.HeaderName || strings.HasPrefix(name, mcp.HeaderParam) {
			fields = append(fields, mcp.Field{Name: name, Value: values[0]})
		}
	}
	return fields
}

func mismatch(what string) *wirejson.RPCError {
	return &wirejson.RPCError{Code: mcp.CodeHeaderMismatch, Message: "Header mismatch: " + what}
}

// jsonBody reports whether the body is announced as plain JSON. A page can send
// anything else across origins without asking first.
func jsonBody(h http.Header) bool {
	if enc, _ := header(h, "Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
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

// accepts returns which of the two forms of an answer the client takes. A client
// that says nothing useful is taken to want plain JSON.
func accepts(h http.Header) (plain, stream bool) {
	values := h["Accept"]
	for _, v := range values {
		all := strings.Contains(v, "*/*")
		plain = plain || all || strings.Contains(v, "application/json") || strings.Contains(v, "application/*")
		stream = stream || strings.Contains(v, "text/event-stream") || strings.Contains(v, "text/*")
	}
	return plain || !stream, stream
}
