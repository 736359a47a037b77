package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"mcpproxy/internal/jsonrpc"
	"mcpproxy/internal/link"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/rawjson"
	"mcpproxy/internal/session"
)

// What a server was found to speak, remembered for the next connection.
const (
	eraUnknown = iota
	eraLegacy
	eraModern
)

// probeTime is how long a server may take to say whether it is a modern one.
// Old ones may say nothing at all.
const probeTime = 5 * time.Second

// errShy is a process that ends when it is asked what it does not know.
var errShy = problem.Ownf("the server ended itself when it was asked for its revision")

// greet finds out what the server speaks and does the handshake of it. What
// was found is remembered until a connection fails.
func (s *server) greet(ctx context.Context, l link.Link) (*greeting, error) {
	era := s.era.Swap(eraUnknown)
	if s.overSSE() {
		era = eraLegacy // the modern revision does not have that transport
	}
	silent := false
	if era != eraLegacy {
		pctx, cancel := context.WithTimeout(ctx, min(probeTime, s.connectTime()/2))
		g, err := s.discover(pctx, l)
		cancel()
		switch {
		case err == nil:
			s.era.Store(eraModern)
			return g, nil
		case l.Cause() != nil && l.Health().PID != 0:
			s.era.Store(eraLegacy)
			return nil, errShy
		case ctx.Err() != nil:
			return nil, err
		}
		silent = errors.Is(err, context.DeadlineExceeded)
	}
	g, err := s.initialize(ctx, l)
	var refused *answerError
	if silent && errors.As(err, &refused) {
		// It was only slow to start, and would not be asked twice.
		if g, again := s.discover(ctx, l); again == nil {
			s.era.Store(eraModern)
			return g, nil
		}
	}
	if err == nil {
		s.era.Store(eraLegacy)
	}
	return g, err
}

// discover asks the server what it is, as the modern revision has it.
func (s *server) discover(ctx context.Context, l link.Link) (*greeting, error) {
	reply, err := l.Do(ctx, &session.Request{Method: mcp.Discover})
	if err == nil && offersModern(reply.Error) {
		reply, err = l.Do(ctx, &session.Request{Method: mcp.Discover})
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", mcp.Discover, err)
	}
	if reply.Error != nil {
		return nil, &answerError{reply.Error.Code}
	}
	m, err := members(reply.Result)
	if err != nil {
		return nil, err
	}
	var versions []string
	if json.Unmarshal(m["supportedVersions"], &versions) != nil || !slices.Contains(versions, mcp.Modern) {
		return nil, problem.Ownf("the server speaks no modern revision of the protocol that we know")
	}
	g := &greeting{version: mcp.Modern, info: rawjson.Find(m["_meta"], mcp.MetaServerInfo)}
	g.offer(m)
	l.Agree(mcp.Modern)
	return g, nil
}

// offersModern says whether a server that refuses a revision names the modern
// one among those it takes: then it is not to be asked in an older one.
func offersModern(e *jsonrpc.Error) bool {
	if e == nil || e.Code != mcp.CodeUnsupportedVersion {
		return false
	}
	var versions []string
	_ = json.Unmarshal(rawjson.Find(e.Data, "supported"), &versions) // none, if it cannot be read
	return slices.Contains(versions, mcp.Modern)
}

// watch keeps a subscription open on which a modern server says that what it
// lists has changed, until ctx or the link ends, or the server has no such thing.
func (s *server) watch(ctx context.Context, l *liveLink) {
	pause := link.MinListenPause
	for {
		start := time.Now()
		err := s.watchOnce(ctx, l)
		var refused *answerError
		switch {
		case ctx.Err() != nil || l.link.Cause() != nil:
			return
		case errors.As(err, &refused) && refused.code == jsonrpc.CodeMethodNotFound:
			return
		case time.Since(start) >= link.SteadyListen:
			pause = link.MinListenPause
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		pause = min(2*pause, link.MaxListenPause)
	}
}

// watchOnce subscribes once and waits for the end of it.
func (s *server) watchOnce(ctx context.Context, l *liveLink) error {
	r := &session.Request{
		Method: mcp.Listen,
		Params: json.RawMessage(`{"notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true}}`),
		Say: func(e session.Event) {
			if e.Method == mcp.Acknowledged { // of changes the link has told
				l.watched.Store(true)
				s.Missed() // what changed before nobody heard
			}
		},
	}
	l.watching.Add(1)
	defer l.watching.Add(-1)
	defer l.watched.Store(false)
	reply, err := l.link.Do(ctx, r)
	if err == nil && reply.Error != nil {
		return &answerError{reply.Error.Code}
	}
	return err
}
