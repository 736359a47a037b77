package bridge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"time"

	"mcpproxy/internal/jsonrpc"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/rawjson"
)

// session is a session of a legacy client with the daemon. The id is the
// daemon's, and a client on stdin never gets to see it.
type session struct {
	id      string
	version string   // what was agreed on
	hello   *message // the initialize that opened it, to open the next one with

	lastEvent string             // of the stream; only its reader uses it
	listening context.CancelFunc // of the stream; bridge.mu guards it
}

// initialize opens a session and answers the client. Nothing of the client is
// looked at in the meantime.
func (b *bridge) initialize(ctx context.Context, msg *message) {
	answer, s, err := b.open(ctx, msg)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		answer = jsonrpc.AppendError(nil, msg.ID, explain(err))
	}
	if s != nil {
		b.mu.Lock()
		clear(b.wishes) // of a session that the client itself has ended
		b.mu.Unlock()
		if old := b.replace(s); old != nil {
			b.wg.Go(func() { b.goodbye(old) })
		}
	}
	b.out.write(answer)
}

// replace makes s the session and ends the stream of the old one.
func (b *bridge) replace(s *session) (old *session) {
	b.mu.Lock()
	defer b.mu.Unlock()
	old, b.session = b.session, s
	if old != nil && old.listening != nil {
		old.listening()
	}
	return old
}

// open asks for a session. Without one, the answer says why.
func (b *bridge) open(ctx context.Context, hello *message) (answer []byte, s *session, err error) {
	resp, err := b.post(ctx, hello, nil)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if answer, err = b.answer(resp, hello.ID); err != nil {
		return nil, nil, err
	}
	m, err := jsonrpc.Parse(answer)
	if err != nil || m.Error != nil {
		return answer, nil, nil
	}
	s = &session{id: resp.Header.Get(mcp.HeaderSession), hello: hello}
	s.version, _ = rawjson.String(rawjson.Find(m.Result, "protocolVersion"))
	if s.id == "" || s.version == "" {
		return nil, nil, errors.New("MCPProxy opened no session")
	}
	return answer, s, nil
}

// errOther says that the daemon is not the one that the client has met.
var errOther = errors.New("MCPProxy was started anew in another version: start the client's connection anew, too")

// renew opens a session in the place of one that the daemon does not know any
// more, since it was started anew. The client does not notice.
func (b *bridge) renew(ctx context.Context, old *session) (*session, error) {
	b.renewing.Lock()
	defer b.renewing.Unlock()
	if s := b.current(&message{}); s != old {
		return s, nil // somebody else was faster
	}
	_, s, err := b.open(ctx, old.hello)
	switch {
	case err != nil:
		return nil, err
	case s == nil:
		return nil, errors.New("MCPProxy opens no new session")
	case s.version != old.version:
		return nil, errOther
	}
	b.replace(s)
	resp, err := b.post(ctx, &message{body: jsonrpc.AppendNotification(nil, mcp.Initialized, nil)}, s)
	if err != nil {
		return nil, err
	}
	discard(resp)
	b.repeatWishes(ctx, s)
	b.listen(s)
	b.Logger.Info("a new session with the daemon", "cause", "it did not know the old one")
	return s, nil
}

// maxWishes is how many wishes are remembered.
const maxWishes = 1024

// remember keeps what the client asks of its session for as long as it lasts:
// the level of log messages, and the resources it wants to hear of. A session
// that takes the place of this one gets to hear it, too.
func (b *bridge) remember(msg *message, answer []byte) {
	key, forget := "", false
	switch {
	case msg.version != "":
		return
	case msg.Method == mcp.SetLevel:
		key = "level"
	case msg.Method == mcp.Subscribe, msg.Method == mcp.Unsubscribe:
		uri, _ := rawjson.String(rawjson.Find(msg.Params, "uri"))
		key, forget = "uri "+uri, msg.Method == mcp.Unsubscribe
	default:
		return
	}
	m, err := jsonrpc.Parse(answer)
	if err != nil || m.Error != nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if forget {
		delete(b.wishes, key)
	} else if len(b.wishes) < maxWishes {
		b.wishes[key] = msg
	}
}

// repeatWishes says in a new session what was asked of the old one. What is
// refused now is lost with it.
func (b *bridge) repeatWishes(ctx context.Context, s *session) {
	b.mu.Lock()
	wishes := slices.Collect(maps.Values(b.wishes))
	b.mu.Unlock()
	for _, msg := range wishes {
		resp, err := b.post(ctx, msg, s)
		if err != nil {
			return
		}
		discard(resp)
	}
}

// listen keeps the stream of s open on which the server says things by itself.
func (b *bridge) listen(s *session) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closing || b.session != s || s.listening != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.listening = cancel
	b.wg.Go(func() {
		defer cancel()
		b.hear(ctx, s)
	})
}

// The pauses between two tries to have the stream.
const (
	minPause = time.Second
	maxPause = 30 * time.Second
)

// hear reads the stream, again and again, until it is not offered or the
// session ends. A daemon that has gone is not started for it.
func (b *bridge) hear(ctx context.Context, s *session) {
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		heard, err := b.hearOnce(ctx, s)
		switch {
		case ctx.Err() != nil || errors.Is(err, errNotOffered):
			return
		case errors.Is(err, errGone):
			rctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tellTime) // a renewal ends this stream
			defer cancel()
			if _, err := b.renew(rctx, s); err != nil {
				b.Logger.Warn("no new session with the daemon", "error", err)
			}
			return
		case heard:
			pause = minPause
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

var (
	errNotOffered = errors.New("the server has no stream of its own")
	errGone       = errors.New("the session has gone")
)

func (b *bridge) hearOnce(ctx context.Context, s *session) (heard bool, err error) {
	resp, err := b.send(ctx, http.MethodGet, nil, s)
	if err != nil {
		return false, err
	}
	defer func() { _ = resp.Body.Close() }()
	switch {
	case resp.StatusCode == http.StatusNotFound:
		return false, errGone
	case resp.StatusCode >= 500:
		return false, fmt.Errorf("HTTP status %d", resp.StatusCode)
	case !isEvents(resp):
		return false, errNotOffered
	}
	events := jsonrpc.NewEventReader(resp.Body, maxMessage)
	for {
		ev, err := events.Next()
		switch {
		case errors.Is(err, io.EOF):
			return true, nil
		case errors.Is(err, jsonrpc.ErrTooLong):
			b.Logger.Warn("a message of the server is left out: it is too large", "limit", maxMessage)
			continue
		case err != nil:
			return true, err
		}
		s.lastEvent = events.LastID()
		if len(ev.Data) == 0 {
			continue
		}
		if _, err := jsonrpc.Parse(ev.Data); err == nil {
			b.out.write(ev.Data)
		}
	}
}

// goodbye ends a session at the daemon.
func (b *bridge) goodbye(s *session) {
	ctx, cancel := context.WithTimeout(context.Background(), goodbyeTime)
	defer cancel()
	if resp, err := b.send(ctx, http.MethodDelete, nil, s); err == nil {
		discard(resp)
	}
}
