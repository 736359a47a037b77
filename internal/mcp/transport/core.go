package transport

import (
	"context"
	"encoding/json"
	"sync/atomic"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
)

// core is the common part of the connections of all transports.
type core struct {
	*session.End
	Options
	pending   *pending
	post      func(ctx context.Context, msg []byte) error // sends a message without a response
	postLater func(msg []byte)                            // post in the background

	received  atomic.Uint64
	listening atomic.Bool // the stream of the server's notifications is open
	agreed    atomic.Bool // the handshake is complete
	modern    atomic.Bool // the modern protocol was agreed
}

func newCore(o Options) core { return core{End: session.NewEnd(), Options: o, pending: newPending()} }

// Agree sets the protocol version after the handshake.
func (l *core) Agree(version string) {
	l.modern.Store(version == mcp.Modern)
	l.agreed.Store(true)
}

// Settled does nothing.
func (l *core) Settled() {}

// Health implements Link.
func (l *core) Health() Health {
	return Health{Received: l.received.Load(), InFlight: l.pending.inFlight(), Listening: l.listening.Load()}
}

// Notify implements Link.
func (l *core) Notify(ctx context.Context, method string, params json.RawMessage) error {
	return l.post(ctx, wirejson.AppendNotification(nil, method, params))
}

// Respond implements Link.
func (l *core) Respond(ctx context.Context, id json.RawMessage, r session.Reply) error {
	if r.Error != nil {
		return l.post(ctx, wirejson.AppendError(nil, id, r.Error))
	}
	return l.post(ctx, wirejson.AppendResult(nil, id, r.Result))
}

// sendQueued sends the messages of the outbox until ctx ends.
func (l *core) sendQueued(ctx context.Context, told *outbox) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-told.some:
		}
		for msg := told.take(); msg != nil && ctx.Err() == nil; msg = told.take() {
			l.sendInBackground(ctx, msg)
		}
	}
}

// sendInBackground sends a message with a time limit and reports a failure to the supervisor.
func (l *core) sendInBackground(ctx context.Context, msg []byte) {
	ctx, cancel := context.WithTimeout(ctx, tellTime)
	defer cancel()
	if err := l.post(ctx, msg); err != nil {
		l.Reports.Doubt()
	}
}

// dispatch delivers a message that is no response on a connection that several clients share. from is the
// request in whose reply stream it arrived, or nil. change: it is a list change that has been reported.
func (l *core) dispatch(m *wirejson.Message, from *entry, change bool) {
	switch e := eventOf(m); {
	case m.IsRequest():
		l.postLater(refuse(m, noCapability))
	case change:
		l.Reports.Notification(m.Method, m.Params)
	case m.Method == mcp.ResourceUpdated && l.Reports.Notification(m.Method, m.Params):
	case m.Method == mcp.Progress:
		l.pending.progress(e, from)
	case from != nil && from.receive(e):
	case from == nil && l.pending.only(e):
	case m.Method == mcp.LogMessage:
		l.Reports.Log("the server says " + string(m.Params[:min(len(m.Params), maxLogText)]))
	}
}
