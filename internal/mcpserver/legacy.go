package mcpserver

import (
	"encoding/json"
	"net/http"
	"strconv"

	"mcpproxy/internal/jsonrpc"
	"mcpproxy/internal/strictjson"
)

// postLegacy answers a message of the era of sessions.
func (x *exchange) postLegacy() {
	if x.msg.Method == "initialize" && x.msg.IsRequest() {
		x.initialize()
		return
	}
	if !x.findSession() {
		return
	}
	defer x.session.release()
	switch {
	case x.msg.IsRequest() && x.msg.Method == "tools/call":
		x.callTool()
	case x.msg.IsRequest():
		x.send(x.answerLegacy())
	default:
		x.notified()
		x.accepted()
	}
}

// answerLegacy answers everything but a call.
func (x *exchange) answerLegacy() outcome {
	switch x.msg.Method {
	case "tools/list":
		return x.listTools()
	case "ping":
		return outcome{result: pieces([]byte("{}"))}
	case "initialize":
		return outcome{err: &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "initialize cannot be part of a batch."}}
	}
	return methodNotFound(x.msg.Method)
}

// notified takes a notification. A response is taken too, and dropped: nothing
// was asked.
func (x *exchange) notified() {
	if x.msg.Method == "notifications/cancelled" {
		x.session.cancel(x.params.requestID, errCancelled)
	}
}

// initialize opens a session.
func (x *exchange) initialize() {
	version, _ := strictjson.String(x.params.version)
	if version == "" || version == modernVersion || !legacyVersion(version) {
		version = latestLegacy
	}
	client, clientVersion := identity(x.params.clientInfo)
	session := &session{actor: x.actor, version: version, client: client, clientVersion: clientVersion}
	if err := x.s.sessions.open(session); err != nil {
		x.fail(http.StatusServiceUnavailable, err)
		return
	}
	x.w.Header()[headerSession] = []string{session.id}
	x.send(outcome{result: pieces([]byte(`{"protocolVersion":"`+version), x.s.texts.initialize)})
}

// findSession finds the session of the request and keeps it from being
// evicted; who finds it has to release it.
func (x *exchange) findSession() bool {
	id, given := x.header(headerSession)
	if !given {
		x.fail(http.StatusBadRequest, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest,
			Message: "Mcp-Session-Id is missing. Send initialize to start a session, or use protocol version 2026-07-28, which needs none."})
		return false
	}
	if x.session = x.s.sessions.find(id, x.actor, x.target); x.session == nil {
		x.fail(http.StatusNotFound, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest,
			Message: sessionOver})
		return false
	}
	return true
}

// get holds a stream open for what a server may say unasked: nothing, here.
func (x *exchange) get() {
	if !x.sessionMethod() || !x.findSession() {
		return
	}
	defer x.session.release()
	if _, stream := accepts(x.r.Header); !stream {
		x.fail(http.StatusNotAcceptable, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest,
			Message: "A GET opens a stream: send Accept: text/event-stream."})
		return
	}
	switch {
	case x.session.talk != nil:
		x.overhear()
		return
	case x.session.all != nil:
		x.overhearAll()
		return
	}
	x.hold([]byte(": open\n\n"), x.session.ended)
}

// delete ends a session.
func (x *exchange) delete() {
	if !x.sessionMethod() || !x.findSession() {
		return
	}
	x.session.release()
	x.s.sessions.end(x.session)
	x.answered = true
	x.deliver(http.StatusNoContent, nil)
}

// sessionMethod refuses GET and DELETE to those who have no session.
func (x *exchange) sessionMethod() bool {
	version := x.r.Header.Get(headerVersion)
	if x.r.Header.Get(headerSession) == "" || !legacyVersion(version) {
		x.methodNotAllowed()
		return false
	}
	return true
}

// batch answers several messages in one. Only one revision has batches.
func (x *exchange) batch(body []byte) {
	messages, err := jsonrpc.SplitBatch(body, limits)
	if err != nil {
		x.fail(http.StatusBadRequest, asRPC(err))
		return
	}
	if id, _ := x.header(headerSession); id == "" {
		x.noBatch()
		return
	}
	if !x.findSession() {
		return
	}
	defer x.session.release()
	_, method := x.header(headerMethod)
	if x.session.version != batchVersion || method || !legacyVersion(x.r.Header.Get(headerVersion)) {
		x.noBatch()
		return
	}
	x.answerBatch(messages)
}

func (x *exchange) noBatch() {
	x.fail(http.StatusBadRequest, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest,
		Message: "Only a session of revision " + batchVersion + " can send batches. Send each message in a request of its own."})
}

// What one batch may ask for: each of its messages is small, but not what it
// can bring about.
const (
	maxBatchRun    = 16      // requests that are run
	maxBatchAnswer = 8 << 20 // bytes of answers, after which no more requests are run
)

// batchBound is why a request of a batch is not run; nil when it is.
func batchBound(ran, size int) *jsonrpc.Error {
	message := ""
	switch {
	case ran >= maxBatchRun:
		message = "Not run: of one batch, at most " + strconv.Itoa(maxBatchRun) + " requests are run."
	case size > maxBatchAnswer:
		message = "Not run: the answers to this batch have reached 8 MiB (" + strconv.Itoa(maxBatchAnswer) + " bytes), the most that one batch gets."
	default:
		return nil
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: message + " Send it again in a request of its own."}
}

// answerBatch answers the messages one after the other. The answer that goes
// over the bound is still given: what it tells of has been done.
func (x *exchange) answerBatch(messages []json.RawMessage) {
	out, ran := []byte{'['}, 0
	for _, m := range messages {
		part := exchange{s: x.s, r: x.r, cfg: x.cfg, target: x.target, actor: x.actor, size: len(m), session: x.session}
		var o outcome
		switch bad := part.read(m); {
		case bad != nil:
			o.err = bad
		case !part.msg.IsRequest() && x.session.all != nil:
			_ = part.noticeAll()
			continue
		case !part.msg.IsRequest() && x.session.talk != nil:
			_ = part.relayNotice() // nobody waits for what comes of it
			continue
		case !part.msg.IsRequest():
			part.notified()
			continue
		default:
			if o.err = batchBound(ran, len(out)); o.err == nil {
				ran++
				o = part.runInBatch()
			}
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = o.append(out, part.msg.ID)
	}
	if len(out) == 1 {
		x.accepted()
		return
	}
	x.write(http.StatusOK, pieces(append(out, ']')))
}

// runInBatch runs one request of a batch.
func (x *exchange) runInBatch() outcome {
	switch {
	case x.session.all != nil && x.msg.Method != "initialize":
		return x.runAllInBatch()
	case x.session.talk != nil && x.msg.Method != "initialize":
		return x.relayInBatch()
	case x.msg.Method == "tools/call":
		return x.callInBatch()
	}
	return x.answerLegacy()
}
