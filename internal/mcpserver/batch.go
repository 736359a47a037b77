package mcpserver

import (
	"context"
	"encoding/json"
	"strconv"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
)

// errNoBatch refuses a batch.
var errNoBatch = &wirejson.RPCError{Code: wirejson.CodeInvalidRequest,
	Message: "Only a session of revision " + mcp.Batches + " can send batches. Send each message in a request of its own."}

// What one batch may ask for: each of its messages is small, but not what it
// can bring about.
const (
	maxBatchRun    = 16      // requests that are run
	maxBatchAnswer = 8 << 20 // bytes of answers, after which no more requests are run
)

// batchBound is why a request of a batch is not run; nil when it is.
func batchBound(ran, size int) *wirejson.RPCError {
	message := ""
	switch {
	case ran >= maxBatchRun:
		message = "Not run: of one batch, at most " + strconv.Itoa(maxBatchRun) + " requests are run."
	case size > maxBatchAnswer:
		message = "Not run: the answers to this batch have reached 8 MiB (" + strconv.Itoa(maxBatchAnswer) + " bytes), the most that one batch gets."
	default:
		return nil
	}
	return &wirejson.RPCError{Code: wirejson.CodeInvalidRequest, Message: message + " Send it again in a request of its own."}
}

// answerBatch answers the messages one after the other; it returns nil when
// there is nothing to answer. The answer that goes over the bound is still returned:
// what it tells of has been done.
func (c *client) answerBatch(ctx context.Context, messages []json.RawMessage) []byte {
	out, ran := []byte{'['}, 0
	for _, text := range messages {
		part := message{client: c}
		var o outcome
		switch bad := part.read(text); {
		case bad != nil:
			o.Error = part.refuse(ctx, bad)
		case !part.IsRequest():
			_ = part.tell(ctx) // nobody waits for what comes of it
			continue
		default:
			if bad = batchBound(ran, len(out)); bad != nil {
				o.Error = part.refuse(ctx, bad)
				break
			}
			ran++
			o = part.answerPart(ctx)
			c.asked = c.asked || part.Method != mcp.Ping
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = appendReply(out, part.ID, &o.Reply)
	}
	if len(out) == 1 {
		return nil
	}
	return append(out, ']')
}

// answerPart has one request of a batch answered.
func (m *message) answerPart(parent context.Context) outcome {
	if m.Method == mcp.Initialize {
		return outcome{Reply: session.Reply{Error: &wirejson.RPCError{Code: wirejson.CodeInvalidRequest, Message: "initialize cannot be part of a batch."}}}
	}
	m.prepare()
	m.req.Endless = false // it has no exchange of its own
	ctx, cancel := context.WithCancelCause(parent)
	m.begin(cancel)
	defer m.end(cancel)
	return m.ask(ctx, cancel, nil)
}
