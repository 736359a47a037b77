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
	Message: "Only a session with protocol version " + mcp.BatchVersion + " can send batches. Send each message in its own request."}

// Limits of one batch. Its messages are small, but their effects and replies may be large.
const (
	maxBatchRun    = 16      // requests that are executed
	maxBatchAnswer = 8 << 20 // bytes of replies, after which no more requests are executed
)

// batchLimitError returns why a request of a batch is not executed, or nil.
func batchLimitError(ran, size int) *wirejson.RPCError {
	message := ""
	switch {
	case ran >= maxBatchRun:
		message = "Not run: of one batch, at most " + strconv.Itoa(maxBatchRun) + " requests are run."
	case size > maxBatchAnswer:
		message = "Not run: the answers to this batch have reached 8 MiB (" + strconv.Itoa(maxBatchAnswer) + " bytes), the most that one batch gets."
	default:
		return nil
	}
	return &wirejson.RPCError{Code: wirejson.CodeInvalidRequest, Message: message + " Send it again in its own request."}
}

// answerBatch answers the messages one after the other; nil if there is no reply. The reply that exceeds
// the limit is still returned, because its request was executed.
func (c *clientState) answerBatch(ctx context.Context, messages []json.RawMessage) []byte {
	out, ran := []byte{'['}, 0
	for _, text := range messages {
		part := message{clientState: c}
		var o requestOutcome
		switch bad := part.parseMessage(text); {
		case bad != nil:
			o.Error = part.recordRefusalIfCall(ctx, bad)
		case !part.IsRequest():
			_ = part.forwardToSession(ctx) // the result is not awaited
			continue
		default:
			if bad = batchLimitError(ran, len(out)); bad != nil {
				o.Error = part.recordRefusalIfCall(ctx, bad)
				break
			}
			ran++
			o = part.answerBatchRequest(ctx)
			c.answered = c.answered || part.Method != mcp.Ping
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

// answerBatchRequest answers one request of a batch.
func (m *message) answerBatchRequest(parent context.Context) requestOutcome {
	if m.Method == mcp.Initialize {
		return requestOutcome{Reply: session.Reply{Error: &wirejson.RPCError{Code: wirejson.CodeInvalidRequest, Message: "initialize cannot be part of a batch."}}}
	}
	m.prepareRequest()
	m.req.Endless = false // part of a batch, so no stream of its own
	ctx, cancel := context.WithCancelCause(parent)
	m.beginCancellable(cancel)
	defer m.endCancellable(cancel)
	return m.runRequest(ctx, cancel, nil)
}
