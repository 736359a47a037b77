package transport

import (
	"context"
	"errors"
	"io"
	"time"

	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
)

// The pauses before a stream is taken up again that a server has ended before
// its answer, and how often that is done without hearing anything new.
const (
	defaultRetry = time.Second
	minRetry     = 10 * time.Millisecond
	maxResumes   = 100
)

// follow reads the events of an answer and passes each message to take, until
// take says that it was the answer. A server that ends the stream early, after
// it has given an event an id, wants to be asked again: then the stream is
// taken up where it ended.
func (l *HTTP) follow(ctx context.Context, a *Response, take func(m wirejson.Message, kept bool) bool) error {
	state, lastID, retry := l.state.Load(), "", defaultRetry
	for resumes := 0; ; resumes++ {
		events := wirejson.NewEventReaderIn(a.Body, l.Budget.Max(), l.Budget.Until(ctx.Done()))
		heard, err := l.readAll(events, take)
		events.Release()
		if resumes > 0 {
			a.Body.Close() // the first one is our caller's
		}
		switch {
		case err == nil:
			return nil
		case err != io.EOF:
			return bounded(l.Budget, err)
		}
		if id := events.LastID(); id != "" {
			lastID = id
		}
		if lastID == "" || l.modern.Load() || resumes == maxResumes {
			return ErrNoAnswer
		}
		if heard {
			resumes = 0
		}
		if events.Retry() > 0 {
			retry = max(minRetry, events.Retry())
		}
		if a, err = l.resume(ctx, state, lastID, retry); err != nil {
			return err
		}
	}
}

// readAll reads events until one is the answer (then err is nil) or the stream
// ends. heard reports whether there was a message.
func (l *HTTP) readAll(events *wirejson.EventReader, take func(m wirejson.Message, kept bool) bool) (heard bool, err error) {
	for {
		ev, err := events.Next()
		if err != nil {
			return heard, err
		}
		l.heard.Add(1)
		if len(ev.Data) == 0 { // it carries an id only
			continue
		}
		heard = true
		data, kept := owned(ev.Data, events)
		found := false
		if split(data, func(m wirejson.Message) { found = found || take(m, kept) }) != nil {
			l.Reports.Odd("it sends events that are not JSON-RPC messages")
		}
		if found {
			return heard, nil
		}
	}
}

// resume asks for the rest of a stream.
func (l *HTTP) resume(ctx context.Context, state *httpState, lastID string, after time.Duration) (*Response, error) {
	pause := time.NewTimer(after)
	defer pause.Stop()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-l.Done():
		return nil, l.Cause()
	case <-pause.C:
	}
	fields := fromEvent(&lastID)
	if fields == nil {
		return nil, ErrNoAnswer
	}
	a, err := l.stream(ctx, state, fields)
	if unsent, ok := errors.AsType[*session.NotSentError](err); ok {
		return nil, unsent.Cause // the request itself was sent
	}
	if _, ok := errors.AsType[*StatusError](err); ok {
		return nil, ErrNoAnswer
	}
	return a, err
}
