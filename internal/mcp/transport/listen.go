package transport

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
)

// The pauses between attempts to open the notification stream.
const (
	MinListenPause = time.Second
	MaxListenPause = time.Minute
	SteadyListen   = 30 * time.Second // a stream of this duration resets the pause
)

// AttendTime limits the wait of the first tools/list for the notification stream.
const AttendTime = 250 * time.Millisecond

// Attend opens the stream and waits for it briefly: some servers send the response head only with the
// first event.
func (l *HTTP) Attend(ctx context.Context) {
	close(l.listenNow)
	ctx, cancel := context.WithTimeout(ctx, AttendTime)
	defer cancel()
	select {
	case <-l.listenReady:
	case <-l.Done():
	case <-ctx.Done():
		l.missed.Store(true)
	}
}

// listen keeps the notification stream open until the link ends or the server refuses it.
func (l *HTTP) listen(ctx context.Context) {
	pause, offered := MinListenPause, false
	settled := sync.OnceFunc(func() { close(l.listenReady) })
	defer settled()
	for {
		start := time.Now()
		err := l.listenOnce(ctx, func() { offered = true; settled() })
		var refused *StatusError
		switch {
		case ctx.Err() != nil, errors.Is(err, ErrSessionGone):
			return
		case errors.As(err, &refused) && !refused.Temporary():
			if offered { // it was offered before: the session may be gone
				l.Reports.Doubt()
			}
			return
		case time.Since(start) >= SteadyListen:
			pause = MinListenPause
		}
		l.missed.Store(true)
		l.Reports.Doubt()
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		pause = min(2*pause, MaxListenPause)
	}
}

// listenOnce reads one stream until it ends. Notifications without a stream are lost.
func (l *HTTP) listenOnce(ctx context.Context, opened func()) error {
	a, err := l.openStream(ctx, nil)
	if err != nil {
		return err
	}
	defer a.Body.Close()
	l.listening.Store(true)
	defer l.listening.Store(false)
	opened()
	if l.missed.Load() {
		l.Reports.Missed()
	}
	return l.readStream(ctx, a, func(m *wirejson.Message) { l.incoming(m, nil) })
}

// Listen passes the notification stream to the client of its own connection, beginning with the events
// that the server has kept.
func (l *HTTP) Listen(ctx context.Context, say func(session.Event), opened func()) error {
	a, err := l.openStream(ctx, l.lastID.Load())
	if err != nil {
		return err
	}
	defer a.Body.Close()
	opened()
	return l.readStream(ctx, a, func(m *wirejson.Message) {
		reportChange(l.Reports, m.Method)
		say(eventOf(m))
	})
}

// fromEvent returns the Last-Event-ID header, nil without a valid ID.
func fromEvent(id *string) []mcp.Header {
	if id == nil {
		return nil
	}
	fields := []mcp.Header{{Name: "Last-Event-ID", Value: *id}}
	if CheckHeaders(fields) != nil {
		return nil
	}
	return fields
}

// openStream opens the notification stream, from the event after id.
func (l *HTTP) openStream(ctx context.Context, id *string) (*Response, error) {
	state := l.state.Load()
	a, err := l.stream(ctx, state, fromEvent(id))
	if err = gone(state, err); err == ErrSessionGone {
		l.Fail(err)
	}
	return a, err
}

// readStream reads a stream until it ends and passes on all messages but responses.
func (l *HTTP) readStream(ctx context.Context, a *Response, each func(*wirejson.Message)) error {
	events := wirejson.NewEventReaderIn(a.Body, l.Budget.Max(), l.Budget.Until(ctx.Done()))
	defer events.Release()
	_, err := l.readAll(events, func(m wirejson.Message, _ bool) bool {
		if !m.IsResponse() {
			each(&m)
		}
		return false
	})
	if id := events.LastID(); id != "" {
		l.lastID.Store(&id)
	}
	if err == io.EOF {
		return nil
	}
	return err
}
