package transport

import (
	"context"
	"encoding/json"
	"sync/atomic"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
)

// core is what connections of all transports have in common.
type core struct {
	*session.End
	Options
	wait *pending
	post func(ctx context.Context, msg []byte) error // sends what has no answer
	tell func(msg []byte)                            // the same, and nobody waits

	heard     atomic.Uint64
	listening atomic.Bool // what the server says by itself is heard now
	greeted   atomic.Bool // the handshake is over
	modern    atomic.Bool // each request stands for itself
}

func newCore(o Options) core { return core{End: session.NewEnd(), Options: o, wait: newPending()} }

// Agree tells the revision that the handshake has settled.
func (l *core) Agree(version string) {
	l.modern.Store(version == mcp.Modern)
	l.greeted.Store(true)
}

// Settled has nothing to do.
func (l *core) Settled() {}

// Health implements Link.
func (l *core) Health() Health {
	return Health{Heard: l.heard.Load(), InFlight: l.wait.inFlight(), Listening: l.listening.Load()}
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

// sendTold sends what has been told until ctx ends.
func (l *core) sendTold(ctx context.Context, told *outbox) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-told.some:
		}
		for msg := told.take(); msg != nil && ctx.Err() == nil; msg = told.take() {
			l.sendSoon(ctx, msg)
		}
	}
}

// sendSoon sends what nobody waits for.
func (l *core) sendSoon(ctx context.Context, msg []byte) {
	ctx, cancel := context.WithTimeout(ctx, tellTime)
	defer cancel()
	if err := l.post(ctx, msg); err != nil {
		l.Reports.Doubt()
	}
}

// spread hands on what is no response on a connection that several clients may
// use. from is the request in whose answer it came; nil: it came by itself.
// change: it tells of a change, and has been told up.
func (l *core) spread(m *wirejson.Message, from *entry, change bool) {
	switch e := eventOf(m); {
	case m.IsRequest():
		l.tell(refuse(m, noCapability))
	case change:
		l.Reports.Heard(m.Method, m.Params)
	case m.Method == mcp.ResourceUpdated && l.Reports.Heard(m.Method, m.Params):
	case m.Method == mcp.Progress:
		l.wait.progress(e, from)
	case from != nil && from.hear(e):
	case from == nil && l.wait.only(e):
	case m.Method == mcp.LogMessage:
		l.Reports.Remark("the server says " + string(m.Params[:min(len(m.Params), maxRemarkText)]))
	}
}
