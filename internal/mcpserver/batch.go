package mcpserver

import (
	"encoding/json"
	"net/http"
	"strconv"

	"mcpproxy/internal/jsonrpc"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/session"
)

// batch answers several messages in one. Only one revision has batches.
func (x *request) batch(body []byte) {
	messages, err := jsonrpc.SplitBatch(body, limits)
	if err != nil {
		x.out.fail(http.StatusBadRequest, asRPC(err))
		return
	}
	if id, _ := x.header(mcp.HeaderSession); id == "" {
		x.noBatch()
		return
	}
	if !x.findSession() {
		return
	}
	defer x.release()
	_, method := x.header(mcp.HeaderMethod)
	if x.entry.version != mcp.Batches || method || !ofSession(x.r.Header.Get(mcp.HeaderVersion)) {
		x.noBatch()
		return
	}
	x.answerBatch(messages)
}

func (x *request) noBatch() {
	x.out.fail(http.StatusBadRequest, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest,
		Message: "Only a session of revision " + mcp.Batches + " can send batches. Send each message in a request of its own."})
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
func (x *request) answerBatch(messages []json.RawMessage) {
	out, ran := []byte{'['}, 0
	for _, text := range messages {
		part := message{client: &x.from}
		var o outcome
		switch bad := part.read(text); {
		case bad != nil:
			o.Error = part.refuse(x.r.Context(), bad)
		case !part.IsRequest():
			_ = part.tell(x.r.Context()) // nobody waits for what comes of it
			continue
		default:
			if bad = batchBound(ran, len(out)); bad != nil {
				o.Error = part.refuse(x.r.Context(), bad)
				break
			}
			ran++
			o = x.answerPart(&part)
			x.asked = x.asked || part.Method != mcp.Ping
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = appendReply(out, part.ID, &o.Reply)
	}
	if len(out) == 1 {
		x.out.accepted()
		return
	}
	x.out.write(http.StatusOK, append(out, ']'))
}

// answerPart has one request of a batch answered.
func (x *request) answerPart(part *message) outcome {
	if part.Method == mcp.Initialize {
		return outcome{Reply: session.Reply{Error: &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "initialize cannot be part of a batch."}}}
	}
	part.prepare()
	part.req.Endless = false // it has no exchange of its own
	ctx, cancel := part.begin(x.r.Context(), part.form())
	defer part.end(cancel)
	return part.ask(ctx)
}
