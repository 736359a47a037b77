package transport

import (
	"context"
	"encoding/json"
	"sync/atomic"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
)

// linkCore is the common part of the connections of all transports.
type linkCore struct {
	*session.EndSignal
	LinkOptions
	pending   *pendingRequests
	post      func(ctx context.Context, msg []byte) error // sends a message without a response
	postLater func(msg []byte)                            // post in the background

	received  atomic.Uint64
	listening atomic.Bool // the stream of the server's notifications is open
	agreed    atomic.Bool // the handshake is complete
	modern    atomic.Bool // the modern protocol was agreed
	roots     atomic.Bool // the server has asked for roots outside of a reply stream
}

func newLinkCore(o LinkOptions) linkCore {
	return linkCore{EndSignal: session.NewEndSignal(), LinkOptions: o, pending: newPendingRequests()}
}

// SetVersion sets the protocol version after the handshake.
func (l *linkCore) SetVersion(version string) {
	l.modern.Store(version == mcp.Modern)
	l.agreed.Store(true)
}

// MarkStartComplete does nothing.
func (l *linkCore) MarkStartComplete() {}

// Health implements Link.
func (l *linkCore) Health() LinkHealth {
	return LinkHealth{Received: l.received.Load(), InFlight: l.pending.countInFlight(), Listening: l.listening.Load()}
}

// NotifyServer implements Link.
func (l *linkCore) NotifyServer(ctx context.Context, method string, params json.RawMessage) error {
	return l.post(ctx, wirejson.AppendNotification(nil, method, params))
}

// AnswerServerQuestion implements Link.
func (l *linkCore) AnswerServerQuestion(ctx context.Context, id json.RawMessage, r session.Reply) error {
	if l.Asks && !l.pending.closeQuestion(id) {
		return nil // it has been refused, or was never asked
	}
	msg := wirejson.AppendResult(nil, id, r.Result)
	if r.Error != nil {
		msg = wirejson.AppendError(nil, id, r.Error)
	}
	err := l.post(ctx, msg)
	if err != nil && l.Asks {
		l.postLater(wirejson.AppendError(nil, id, requestOver)) // a server ignores a second answer
	}
	return err
}

// sendOutbox sends the messages of the outbox until ctx ends.
func (l *linkCore) sendOutbox(ctx context.Context, told *outbox) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-told.some:
		}
		for msg := told.takeMessage(); msg != nil && ctx.Err() == nil; msg = told.takeMessage() {
			l.sendBackgroundMessage(ctx, msg)
		}
	}
}

// sendBackgroundMessage sends a message with a time limit, in the caller's goroutine. It reports a failure to the
// supervisor.
func (l *linkCore) sendBackgroundMessage(ctx context.Context, msg []byte) {
	ctx, cancel := context.WithTimeout(ctx, tellTime)
	defer cancel()
	if err := l.post(ctx, msg); err != nil {
		l.Reports.ConnectionDoubtful()
	}
}

// deliverSharedMessage delivers a message that is not a response on a connection that several clients share. from is
// the request in whose reply stream it arrived, or nil. change reports that it is a list change that has been reported
// already.
func (l *linkCore) deliverSharedMessage(m *wirejson.Message, from *pendingRequest, change bool) {
	switch e := toEvent(m); {
	case m.IsRequest():
		l.routeQuestion(m, e, from)
	case m.Method == mcp.Cancelled && l.Asks:
		l.pending.withdrawQuestion(e)
	case change:
		l.Reports.Notification(m.Method, m.Params)
	case m.Method == mcp.ResourceUpdated && l.Reports.Notification(m.Method, m.Params):
	case m.Method == mcp.Progress:
		l.pending.deliverProgress(e, from)
	case from != nil && from.deliverIfWanted(e):
	case from == nil && l.pending.deliverToOnlyRequest(e):
	case m.Method == mcp.LogMessage:
		l.Reports.Log("log message of the server: " + string(m.Params[:min(len(m.Params), maxLogText)]))
	}
}
