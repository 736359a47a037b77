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

// secretsWait is how long servers that need none wait for those that do: longer
// than a keyring takes that answers. The others follow when it has.
const secretsWait = 250 * time.Millisecond

// secretValues has the values of the secrets that servers need which may start, and no
// others, in memory alone. A keyring may wait for a person, so that run asks it.
type secretValues struct {
	store   *secret.Store
	logger  *slog.Logger
	changed func() // called by run when values are others
	poke    chan struct{}

	mu     sync.Mutex // guards what follows
	wanted []string
	known  map[string]held
	fresh  chan struct{} // closed when all that is wanted is known
}

// held is one secret as it was read.
type held struct {
	revision, value string
	err             error
}

func newSecretValues(store *secret.Store, logger *slog.Logger) *secretValues {
	return &secretValues{store: store, logger: logger, poke: make(chan struct{}, 1), known: map[string]held{}, fresh: make(chan struct{})}
}

// want has the secrets of these names read, forgets all others, and waits a moment
// for those that are not known.
func (s *secretValues) want(names []string) {
	s.mu.Lock()
	s.wanted = names
	for name := range s.known {
		if !slices.Contains(names, name) {
			delete(s.known, name)
		}
	}
	known, fresh := s.allKnown(), s.fresh
	s.mu.Unlock()
	if known {
		return
	}
	s.look()
	limit := time.NewTimer(secretsWait)
	defer limit.Stop()
	select {
	case <-fresh:
	case <-limit.C:
	}
}

// allKnown reports whether all that is wanted is known. The caller holds mu.
func (s *secretValues) allKnown() bool {
	return !slices.ContainsFunc(s.wanted, func(name string) bool { _, ok := s.known[name]; return !ok })
}

// look has run look for values that are others.
func (s *secretValues) look() {
	select {
	case s.poke <- struct{}{}:
	default:
	}
}

// value returns a secret for a server, or what to do about it.
func (s *secretValues) value(name string) (string, error) {
	s.mu.Lock()
	h, ok := s.known[name]
	s.mu.Unlock()
	switch {
	case !ok:
		return "", problem.Ownf("the keyring has not answered for the secret %s yet", name)
	case errors.Is(h.err, secret.ErrMissing):
		return "", problem.Ownf("it needs the secret %s: run `mcpproxy secrets set %s`", name, name)
	case errors.Is(h.err, secret.ErrLocked):
		return "", problem.Ownf("the secret %s is in the keyring of the system, which MCPProxy cannot use: unlock it and restart MCPProxy, or run `mcpproxy secrets set %s`", name, name)
	case h.err != nil:
		return "", problem.Ownf("the secret %s cannot be read: the log of MCPProxy says why, `mcpproxy secrets set %s` sets it anew", name, name)
	}
	return h.value, nil
}

// run reads what is wanted and follows the store, until ctx ends.
func (s *secretValues) run(ctx context.Context) {
	var following sync.WaitGroup
	following.Go(func() { s.store.Follow(ctx, s.look) })
	defer following.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.poke:
		}
		if s.read(ctx) {
			s.changed()
		}
	}
}

// read reads the values that are not known or have been set since, and reports
// whether any is another one.
func (s *secretValues) read(ctx context.Context) (news bool) {
	index, err := s.store.List()
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
		next := held{revision: index[name].Revision}
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
		close(s.fresh)
		s.fresh = make(chan struct{})
	}
	return news
}
