package upstream

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"mcpproxy/internal/jsonrpc"
)

// The pauses before a stream is taken up again that a server has ended before
// its answer, and how often that is done without hearing anything new.
const (
	defaultRetry = time.Second
	minRetry     = 10 * time.Millisecond
	maxResumes   = 100
)

// follow reads the events of an answer and gives each message to take, until
// take says that it was the answer. A server that ends the stream early, after
// it has given an event an id, wants to be asked again: then the stream is
// taken up where it ended.
func (l *httpLink) follow(ctx context.Context, a *answer, take func(m *jsonrpc.Message, kept bool) bool) error {
	state, lastID, retry := l.state.Load(), "", defaultRetry
	for resumes := 0; ; resumes++ {
		events := jsonrpc.NewEventReaderIn(a.body, l.room.max, l.room.until(ctx.Done()))
		heard, err := l.readAll(events, take)
		events.Release()
		if resumes > 0 {
			a.body.Close() // the first one is our caller's
		}
		switch {
		case err == nil:
			return nil
		case errors.Is(err, jsonrpc.ErrTooLong):
			return l.room.tooLarge()
		case errors.Is(err, jsonrpc.ErrCrowded):
			return l.room.crowded()
		case err != io.EOF:
			return err
		}
		if id := events.LastID(); id != "" {
			lastID = id
		}
		if lastID == "" || l.modern || resumes == maxResumes {
			return errNoAnswer
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
// ends. heard says whether there was a message.
func (l *httpLink) readAll(events *jsonrpc.EventReader, take func(m *jsonrpc.Message, kept bool) bool) (heard bool, err error) {
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
		data, kept := ev.Data, len(ev.Data) >= keepFrom
		if kept {
			data = events.Keep()
		}
		found := false
		if split(data, func(m jsonrpc.Message) { found = found || take(&m, kept) }) != nil {
			l.up.remark("an event is no JSON-RPC message")
		}
		if found {
			return heard, nil
		}
	}
}

// resume asks for the rest of a stream.
func (l *httpLink) resume(ctx context.Context, state *httpState, lastID string, after time.Duration) (*answer, error) {
	pause := time.NewTimer(after)
	defer pause.Stop()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-l.lost():
		return nil, l.cause()
	case <-pause.C:
	}
	fields := []Field{{"Last-Event-ID", lastID}}
	if sound(fields) != nil {
		return nil, errNoAnswer
	}
	a, err := l.client.do(ctx, &exchange{method: http.MethodGet, head: state.get, fields: fields})
	if err != nil {
		return nil, err
	}
	if a.status != http.StatusOK || a.media != mediaEvents || a.encoded {
		a.body.Close()
		return nil, errNoAnswer
	}
	return a, nil
}
