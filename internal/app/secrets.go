package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"mcpproxy/internal/problem"
	"mcpproxy/internal/upstream/secret"
)

// secretsWait is how long servers wait for unread secrets before the others start. It is longer than a keyring that answers takes.
const secretsWait = 250 * time.Millisecond

// secretCache caches in memory the secrets of the servers that may start. A keyring may wait for the user, so readUntilDone reads it in its own goroutine.
type secretCache struct {
	store   *secret.Store
	logger  *slog.Logger
	changed func() // called by readUntilDone when values have changed
	wake    chan struct{}

	mu      sync.Mutex // guards the fields below
	wanted  []string
	known   map[string]cachedSecret
	allRead chan struct{} // closed when all wanted secrets are known
}

// cachedSecret is one secret that was read.
type cachedSecret struct {
	revision, value string
	err             error
}

func newSecretCache(store *secret.Store, logger *slog.Logger) *secretCache {
	return &secretCache{store: store, logger: logger, wake: make(chan struct{}, 1), known: map[string]cachedSecret{}, allRead: make(chan struct{})}
}

// setWanted sets the names of the needed secrets, drops all others, and waits briefly for unknown ones.
func (s *secretCache) setWanted(names []string) {
	s.mu.Lock()
	s.wanted = names
	for name := range s.known {
		if !slices.Contains(names, name) {
			delete(s.known, name)
		}
	}
	known, fresh := s.allKnown(), s.allRead
	s.mu.Unlock()
	if known {
		return
	}
	s.requestRead()
	limit := time.NewTimer(secretsWait)
	defer limit.Stop()
	select {
	case <-fresh:
	case <-limit.C:
	}
}

// allKnown reports whether all wanted secrets were read. The caller holds mu.
func (s *secretCache) allKnown() bool {
	return !slices.ContainsFunc(s.wanted, func(name string) bool { _, ok := s.known[name]; return !ok })
}

// requestRead makes readUntilDone read changed values.
func (s *secretCache) requestRead() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// valueFor returns a secret for a server, or an error with the fix.
func (s *secretCache) valueFor(name string) (string, error) {
	s.mu.Lock()
	h, ok := s.known[name]
	s.mu.Unlock()
	switch {
	case !ok:
		return "", problem.TrustedTextErrorf("the keyring has not returned the secret %s yet", name)
	case errors.Is(h.err, secret.ErrMissing):
		return "", problem.TrustedTextErrorf("it needs the secret %s: run `mcpproxy secrets set %s`", name, name)
	case errors.Is(h.err, secret.ErrLocked):
		return "", problem.TrustedTextErrorf("the secret %s is in the keyring of the system, which MCPProxy cannot use: unlock it and restart MCPProxy, or run `mcpproxy secrets set %s`", name, name)
	case h.err != nil:
		return "", problem.TrustedTextErrorf("the secret %s cannot be read: see the log of MCPProxy for the reason, or set it again with `mcpproxy secrets set %s`", name, name)
	}
	return h.value, nil
}

// readUntilDone reads wanted secrets and follows the store, until ctx ends.
func (s *secretCache) readUntilDone(ctx context.Context) {
	var following sync.WaitGroup
	following.Go(func() { s.store.FollowChanges(ctx, s.requestRead) })
	defer following.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
		}
		if s.readChanged(ctx) {
			s.changed()
		}
	}
}

// readChanged reads the unknown and changed values, and reports whether any value has changed.
func (s *secretCache) readChanged(ctx context.Context) (news bool) {
	index, err := s.store.ListIndex()
	if err != nil {
		s.logger.Error("the names of the secrets cannot be read", "error", err)
	}
	s.mu.Lock()
	wanted := slices.Clone(s.wanted)
	s.mu.Unlock()
	for _, name := range wanted {
		s.mu.Lock()
		before, ok := s.known[name]
		s.mu.Unlock()
		if ok && before.revision == index[name].Revision {
			continue
		}
		next := cachedSecret{revision: index[name].Revision}
		if next.value, next.err = s.store.Get(ctx, name); next.err != nil && !errors.Is(next.err, secret.ErrMissing) {
			s.logger.Warn("a secret cannot be read", "secret", name, "error", next.err)
		}
		news = news || !ok || next.value != before.value || fmt.Sprint(next.err) != fmt.Sprint(before.err)
		s.mu.Lock()
		if slices.Contains(s.wanted, name) {
			s.known[name] = next
		}
		s.mu.Unlock()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.allKnown() {
		close(s.allRead)
		s.allRead = make(chan struct{})
	}
	return news
}
