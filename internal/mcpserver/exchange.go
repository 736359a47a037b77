package mcpserver

import (
	"net/http"
	"strings"

	"mcpproxy/internal/activity"
	"mcpproxy/internal/auth"
	"mcpproxy/internal/config"
	"mcpproxy/internal/gateway"
	"mcpproxy/internal/jsonrpc"
	"mcpproxy/internal/strictjson"
	"mcpproxy/internal/upstream"
)

// exchange is one HTTP request and what is known of it so far.
type exchange struct {
	s      *Server
	w      http.ResponseWriter
	r      *http.Request
	cfg    *config.Config
	target string // the server that the request is for; "" for /mcp
	actor  auth.Actor
	size   int // of the body

	msg     jsonrpc.Message
	params  params
	meta    meta
	modern  bool
	session *session         // nil in the modern era
	heads   []upstream.Field // what the server's answer has in its head

	answered bool // the header is out
}

// Headers of the transport, in Go's canonical spelling.
const (
	headerVersion = "Mcp-Protocol-Version"
	headerMethod  = "Mcp-Method"
	headerName    = "Mcp-Name"
	headerSession = "Mcp-Session-Id"
)

// post answers one POST: one message, or a batch in the one revision that has
// batches.
func (x *exchange) post() {
	if !jsonBody(x.r.Header) {
		x.fail(http.StatusUnsupportedMediaType, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest,
			Message: "The body must be JSON, sent with Content-Type: application/json and no Content-Encoding."})
		return
	}
	body, ok := x.readBody()
	if !ok {
		return
	}
	x.size = len(body)
	if strictjson.Kind(body) == '[' {
		x.batch(body)
		return
	}
	if !x.parse(body) {
		return
	}
	x.modern = x.isModern()
	if bad := x.checkHeaders(); bad != nil {
		x.fail(http.StatusBadRequest, bad)
		return
	}
	switch {
	case x.target == allTarget:
		x.postAll()
	case x.target != "":
		x.postRelay()
	case x.modern:
		x.postModern()
	default:
		x.postLegacy()
	}
}

// parse reads the message and the parts of its params that decide where it
// goes.
func (x *exchange) parse(body []byte) bool {
	bad := x.read(body)
	if bad != nil {
		x.fail(http.StatusBadRequest, bad)
	}
	return bad == nil
}

func (x *exchange) read(body []byte) *jsonrpc.Error {
	msg, err := jsonrpc.ParseRequest(body, limits)
	x.msg = msg // of a broken message, the id at least
	if err != nil {
		return asRPC(err)
	}
	if x.params, err = readParams(msg.Params); err != nil {
		return invalidParams("params must be an object")
	}
	if x.meta, err = readMeta(x.params.meta); err != nil {
		return invalidParams("params._meta must be an object")
	}
	return nil
}

// isModern says which era the message belongs to: the modern one says so in
// every request, and initialize without saying so opens a session.
func (x *exchange) isModern() bool {
	if x.meta.version != nil {
		return true
	}
	return x.msg.Method != "initialize" && !legacyVersion(x.r.Header.Get(headerVersion))
}

// legacyVersion says whether the header, which may be missing, is one that
// belongs to a session.
func legacyVersion(header string) bool {
	if header == "" {
		return true
	}
	for _, v := range versions[1:] {
		if v == header {
			return true
		}
	}
	return false
}

// caller is who the gateway and the record get to see.
func (x *exchange) caller() gateway.Caller {
	c := gateway.Caller{Actor: x.actor, Source: activity.SourceMCP, RequestID: requestID(x.msg.ID)}
	if x.session != nil {
		c.SessionID, c.ClientName, c.ClientVersion = x.session.record, x.session.client, x.session.clientVersion
		return c
	}
	c.ClientName, c.ClientVersion = identity(x.meta.clientInfo)
	return c
}

// requestID is the id as text.
func requestID(id []byte) string {
	if text, ok := strictjson.String(id); ok {
		return bounded(text, maxIdentity)
	}
	return bounded(string(id), maxIdentity)
}

// bounded cuts what a client says of itself, between characters.
func bounded(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "")
}

func (x *exchange) methodNotAllowed() {
	allow := "GET, POST, DELETE"
	if x.r.Header.Get(headerSession) == "" || !legacyVersion(x.r.Header.Get(headerVersion)) {
		allow = "POST"
	}
	x.w.Header().Set("Allow", allow)
	x.fail(http.StatusMethodNotAllowed, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest,
		Message: x.r.Method + " is not allowed here. Send each message by POST. GET and DELETE need a session (Mcp-Session-Id)."})
}
