package transport

import (
	"context"
	"errors"
	"io"
	"time"

	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
)

// The pauses before a stream is resumed that a server ended before its response, and the maximum number of resumptions
// without a new message.
const (
	defaultRetry = time.Second
	minRetry     = 10 * time.Millisecond
	maxResumes   = 100
)

// followReplyStream reads the events of a reply stream and passes each message to take, until take reports the
// response. If the server ends the stream early, after an event with an ID, it resumes the stream at that event.
func (l *HTTPLink) followReplyStream(ctx context.Context, a *HTTPResponse, take func(m wirejson.Message, kept bool) bool) error {
	state, lastID, retry := l.state.Load(), "", defaultRetry
	for resumes := 0; ; resumes++ {
		events := wirejson.NewSSEReaderWithPool(a.Body, l.Budget.MaxMessage(), l.Budget.ForReader(ctx.Done()))
		heard, err := l.readEvents(events, take)
		events.Release()
		if resumes > 0 {
			a.Body.Close() // the caller closes the first body
		}
		switch {
		case err == nil:
			return nil
		case err != io.EOF:
			return toBudgetError(l.Budget, err)
		}
		if id := events.LastEventID(); id != "" {
			lastID = id
		}
		if lastID == "" || l.modern.Load() || resumes == maxResumes {
			return ErrNoAnswer
		}
		if heard {
			resumes = 0
		}
		if events.RetryDelay() > 0 {
			retry = max(minRetry, events.RetryDelay())
		}
		if a, err = l.resumeStream(ctx, state, lastID, retry); err != nil {
			return err
		}
	}
}

// readEvents reads events until take reports the response or the stream ends. heard reports whether a message arrived.
func (l *HTTPLink) readEvents(events *wirejson.SSEReader, take func(m wirejson.Message, kept bool) bool) (heard bool, err error) {
	for {
		ev, err := events.Next()
		if err != nil {
			return heard, err
		}
		l.received.Add(1)
		if len(ev.Data) == 0 { // an event with only an ID
			continue
		}
		heard = true
		data, kept := takeOwnership(ev.Data, events)
		found := false
		if eachMessage(data, func(m wirejson.Message) { found = found || take(m, kept) }) != nil {
			l.Reports.ProtocolViolation("it sends events that are not JSON-RPC messages")
		}
		if found {
			return heard, nil
		}
	}
}

// resumeStream requests the rest of a stream.
func (l *HTTPLink) resumeStream(ctx context.Context, state *sessionRequestHeads, lastID string, after time.Duration) (*HTTPResponse, error) {
	pause := time.NewTimer(after)
	defer pause.Stop()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-l.Done():
		return nil, l.Cause()
	case <-pause.C:
	}
	fields := lastEventIDHeader(&lastID)
	if fields == nil {
		return nil, ErrNoAnswer
	}
	a, err := l.requestEventStream(ctx, state, fields)
	if unsent, ok := errors.AsType[*session.NotSentError](err); ok {
		return nil, unsent.Cause // the request itself was sent
	}
	if _, ok := errors.AsType[*StatusError](err); ok {
		return nil, ErrNoAnswer
	}
	return a, err
}
