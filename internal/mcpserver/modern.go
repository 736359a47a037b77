package mcpserver

import (
	"net/http"

	"mcpproxy/internal/jsonrpc"
	"mcpproxy/internal/strictjson"
)

// modernVersion is the revision whose requests stand for themselves. The
// others need a session. versions are all, the newest first.
const modernVersion = "2026-07-28"

var versions = [...]string{modernVersion, "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

const (
	latestLegacy = "2025-11-25"
	batchVersion = "2025-03-26"
	versionList  = `["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"]`
)

// postModern answers a message of the stateless era.
func (x *exchange) postModern() {
	switch {
	case x.msg.IsNotification():
		// Over HTTP this era has none: a call is cancelled by closing it.
		x.accepted()
		return
	case !x.msg.IsRequest():
		x.fail(http.StatusBadRequest, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest,
			Message: "A client sends requests only in this revision of the protocol."})
		return
	}
	switch x.msg.Method {
	case "tools/call":
		x.callTool()
	case "tools/list":
		x.send(x.listTools())
	case "server/discover":
		x.send(outcome{result: pieces(x.s.texts.discover)})
	case "subscriptions/listen":
		x.listen()
	default:
		x.send(methodNotFound(x.msg.Method))
	}
}

// listen holds a subscription open. The list of the built-in tools changes
// with the configuration at most, which is not announced, so there is nothing
// to agree to and nothing that will come.
func (x *exchange) listen() {
	if n := x.params.notifications; n != nil && strictjson.Kind(n) != '{' {
		x.send(outcome{err: invalidParams("params.notifications must be an object")})
		return
	}
	meta := `{"` + metaSubscription + `":` + string(x.msg.ID)
	ack := jsonrpc.AppendNotification(nil, "notifications/subscriptions/acknowledged",
		[]byte(`{"_meta":`+meta+`},"notifications":{}}`))
	if !x.hold(jsonrpc.AppendEvent(nil, "", ack), nil) {
		return
	}
	end := []byte(`{"resultType":"complete","_meta":` + meta + `,` + x.s.texts.serverInfoMember + `}}`)
	x.lastEvent(jsonrpc.AppendResult(nil, x.msg.ID, end))
}

func methodNotFound(method string) outcome {
	return outcome{err: &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "Method not found: " + bounded(method, maxIdentity)}}
}
