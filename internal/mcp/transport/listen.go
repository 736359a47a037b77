package transport

import (
	"context"
	"errors"
	"io"
	"net/http"
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
	SteadyListen   = 30 * time.Second // a stream that lasts this long resets the pause
)

// AttendTime limits the wait of the first tools/list for the notification stream.
const AttendTime = 250 * time.Millisecond

// OpenNotificationStream opens the stream and waits for it for a short time. It does not wait longer, because some
// servers send the response head only with the first event.
func (l *HTTPLink) OpenNotificationStream(ctx context.Context) {
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

// keepNotificationStream keeps the notification stream open until the link ends or the server refuses it.
func (l *HTTPLink) keepNotificationStream(ctx context.Context) {
	pause, offered := MinListenPause, false
	settled := sync.OnceFunc(func() { close(l.listenReady) })
	defer settled()
	for {
		start := time.Now()
		err := l.readNotificationStreamOnce(ctx, func() { offered = true; settled() })
		var refused *StatusError
		switch {
		case ctx.Err() != nil, errors.Is(err, ErrSessionGone):
			return
		case errors.As(err, &refused) && !refused.Temporary():
			if offered { // the server offered the stream before, so the session may be lost
				l.Reports.ConnectionDoubtful()
			}
			return
		case time.Since(start) >= SteadyListen:
			pause = MinListenPause
		}
		l.missed.Store(true)
		l.Reports.ConnectionDoubtful()
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		pause = min(2*pause, MaxListenPause)
	}
}

// readNotificationStreamOnce reads one stream until it ends. Notifications that the server sends without an open stream
// are lost.
func (l *HTTPLink) readNotificationStreamOnce(ctx context.Context, opened func()) error {
	a, err := l.requestNotificationStream(ctx, nil)
	if err != nil {
		return err
	}
	defer a.Body.Close()
	l.listening.Store(true)
	defer l.listening.Store(false)
	opened()
	if l.missed.Load() {
		l.Reports.NotificationsMissed()
	}
	return l.readNotifications(ctx, a, func(m *wirejson.Message) { l.deliverMessage(m, nil) })
}

// Listen passes the notification stream to the client of its own connection, starting with the events that the server
// has stored.
func (l *HTTPLink) Listen(ctx context.Context, say func(session.Event), opened func()) error {
	a, err := l.requestNotificationStream(ctx, l.lastID.Load())
	if err != nil {
		return err
	}
	defer a.Body.Close()
	opened()
	return l.readNotifications(ctx, a, func(m *wirejson.Message) {
		reportListChange(l.Reports, m.Method)
		say(toEvent(m))
	})
}

// lastEventIDHeader returns the Last-Event-ID header, or nil if there is no valid ID.
func lastEventIDHeader(id *string) []mcp.Header {
	if id == nil {
		return nil
	}
	fields := []mcp.Header{{Name: "Last-Event-ID", Value: *id}}
	if CheckHeaders(fields) != nil {
		return nil
	}
	return fields
}

// requestNotificationStream opens the notification stream, from the event after id. A server that has no such stream
// may also answer 404. So the session has ended only if the server refuses other requests, too.
func (l *HTTPLink) requestNotificationStream(ctx context.Context, id *string) (*HTTPResponse, error) {
	state := l.state.Load()
	a, err := l.requestEventStream(ctx, state, lastEventIDHeader(id))
	if gone := map404ToSessionGone(state, err); gone == ErrSessionGone && l.probeSessionLost(ctx, state, http.StatusNotFound, "") {
		l.Signal(gone)
		return nil, gone
	}
	return a, err
}

// readNotifications reads a stream until it ends and passes on all messages except responses.
func (l *HTTPLink) readNotifications(ctx context.Context, a *HTTPResponse, each func(*wirejson.Message)) error {
	events := wirejson.NewSSEReaderWithPool(a.Body, l.Budget.MaxMessage(), l.Budget.ForReader(ctx.Done()))
	defer events.Release()
	_, err := l.readEvents(events, func(m wirejson.Message, _ bool) bool {
		if !m.IsResponse() {
			each(&m)
		}
		return false
	})
	if id := events.LastEventID(); id != "" {
		l.lastID.Store(&id)
	}
	if err == io.EOF {
		return nil
	}
	return err
}
