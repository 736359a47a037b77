package app

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"time"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/store"
	"mcpproxy/internal/upstream"
)

// needStore stores which clients need their own session with a server.
type needStore interface {
	LearnedSessions(ctx context.Context) ([]store.LearnedSession, error)
	SaveLearnedSession(ctx context.Context, l store.LearnedSession) error
}

// learnedNeeds are the needs of servers that their questions have shown, also in earlier runs. A need belongs to one launch
// of a server.
type learnedNeeds struct {
	store  needStore
	logger *slog.Logger
	wake   chan struct{} // cap 1: there is something to save

	mu       sync.Mutex // guards the fields below
	isLoaded bool
	launches map[string]tool.Fingerprint // of the servers that run
	known    []store.LearnedSession
	unsaved  []store.LearnedSession
}

func newLearnedNeeds(s needStore, logger *slog.Logger) *learnedNeeds {
	return &learnedNeeds{store: s, logger: logger, wake: make(chan struct{}, 1), launches: map[string]tool.Fingerprint{}}
}

// needsLoadTime limits how long the start of the servers waits for the stored needs. Without them they are learned again.
const needsLoadTime = 5 * time.Second

// load reads the stored needs once.
func (n *learnedNeeds) load() {
	n.mu.Lock()
	isLoaded := n.isLoaded
	n.mu.Unlock()
	if isLoaded {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), needsLoadTime)
	defer cancel()
	stored, err := n.store.LearnedSessions(ctx)
	if err != nil {
		n.logger.Warn("could not read which clients need their own session with a server", "error", err)
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.isLoaded {
		n.known = append(n.known, stored...)
	}
	n.isLoaded = true
}

// needsOf returns the needs of a launch of a server, which runs from now on.
func (n *learnedNeeds) needsOf(server string, launch tool.Fingerprint) (all []upstream.KnownNeed) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.launches[server] = launch
	for _, l := range n.known {
		if l.Server == server && bytes.Equal(l.Launch, launch[:]) {
			all = append(all, upstream.KnownNeed{Need: upstream.SessionNeed(l.Need), Since: l.Since})
		}
	}
	return all
}

// learn records a need of a server that runs, and saves it soon.
func (n *learnedNeeds) learn(server string, k upstream.KnownNeed) {
	n.mu.Lock()
	defer n.mu.Unlock()
	launch := n.launches[server]
	l := store.LearnedSession{Server: server, Launch: launch[:], Need: string(k.Need), Since: k.Since}
	n.known, n.unsaved = append(n.known, l), append(n.unsaved, l)
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// run saves what is learned, until ctx ends.
func (n *learnedNeeds) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.wake:
		}
		n.mu.Lock()
		batch := n.unsaved
		n.unsaved = nil
		n.mu.Unlock()
		for _, l := range batch {
			if err := n.store.SaveLearnedSession(ctx, l); err != nil { // it is learned again after a restart
				n.logger.Warn("could not store which clients need their own session with a server", "server", l.Server, "need", l.Need, "error", err)
			}
		}
	}
}
