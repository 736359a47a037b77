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

// The pauses between attempts to have a stream of what the server says by itself.
const (
	MinListenPause = time.Second
	MaxListenPause = time.Minute
	SteadyListen   = 30 * time.Second // a stream that held so long was a good one
)

// AttendTime is how long the first list of tools waits for the server's own
// stream.
const AttendTime = 250 * time.Millisecond

// Attend has the stream opened, and waits for it a moment: some servers answer
// only when they have something to say.
func (l *HTTP) Attend(ctx context.Context) {
	close(l.listenNow)
	ctx, cancel := context.WithTimeout(ctx, AttendTime)
	defer cancel()
	select {
	case <-l.listens:
	case <-l.Done():
	case <-ctx.Done():
		l.late.Store(true)
	}
}

// listen keeps the stream open on which the server says things by itself,
// until the link ends or the server does not offer one.
func (l *HTTP) listen(ctx context.Context) {
	pause, offered := MinListenPause, false
	settled := sync.OnceFunc(func() { close(l.listens) })
	defer settled()
	for {
		start := time.Now()
		err := l.listenOnce(ctx, func() { offered = true; settled() })
		var refused *StatusError
		switch {
		case ctx.Err() != nil, errors.Is(err, ErrSessionGone):
			return
		case errors.As(err, &refused) && !refused.Passing():
			if offered { // it was a moment ago: the session may be gone
				l.Reports.Doubt()
			}
			return
		case time.Since(start) >= SteadyListen:
			pause = MinListenPause
		}
		l.late.Store(true)
		l.Reports.Doubt()
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		pause = min(2*pause, MaxListenPause)
	}
}

// listenOnce reads one stream until it ends. What was said while there was
// none is lost.
func (l *HTTP) listenOnce(ctx context.Context, opened func()) error {
	a, err := l.ownStream(ctx, nil)
	if err != nil {
		return err
	}
	defer a.Body.Close()
	l.listening.Store(true)
	defer l.listening.Store(false)
	opened()
	if l.late.Load() {
		l.Reports.Missed()
	}
	return l.hear(ctx, a, func(m *wirejson.Message) { l.incoming(m, nil) })
}

// Listen hands the client whose own the session is the stream of what the server
// says by itself. What was said while nobody listened comes first, where the
// server has kept it.
func (l *HTTP) Listen(ctx context.Context, say func(session.Event), opened func()) error {
	a, err := l.ownStream(ctx, l.lastID.Load())
	if err != nil {
		return err
	}
	defer a.Body.Close()
	opened()
	return l.hear(ctx, a, func(m *wirejson.Message) {
		changed(l.Reports, m.Method)
		say(eventOf(m))
	})
}

// fromEvent returns the header line that names the event after which a stream is to
// go on, none where there is no such event or its id cannot be said.
func fromEvent(id *string) []mcp.Field {
	if id == nil {
		return nil
	}
	fields := []mcp.Field{{Name: "Last-Event-ID", Value: *id}}
	if CheckFields(fields) != nil {
		return nil
	}
	return fields
}

// ownStream opens the stream of what the server says by itself, which goes on
// after the event of that id.
func (l *HTTP) ownStream(ctx context.Context, id *string) (*Response, error) {
	state := l.state.Load()
	a, err := l.stream(ctx, state, fromEvent(id))
	if err = gone(state, err); err == ErrSessionGone {
		l.Fail(err)
	}
	return a, err
}

// hear reads a stream until it ends, and hands on what is no response.
func (l *HTTP) hear(ctx context.Context, a *Response, each func(*wirejson.Message)) error {
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
