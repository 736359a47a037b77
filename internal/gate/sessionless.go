package gate

import (
	"crypto/rand"
	"maps"
	"sync"
	"time"

	"mcpproxy/internal/config/auth"
)

// The limits of clients without a session.
const (
	maxSessionless     = 1_000
	sessionlessTimeout = 30 * time.Minute
)

// sessionIDAssigner assigns session IDs to clients without a session, for the record. The same actor and client keep
// their ID until half an hour passes without a call.
type sessionIDAssigner struct {
	mu    sync.Mutex // guards byKey
	byKey map[sessionlessClientKey]*syntheticSession
}

type sessionlessClientKey struct{ actor, client, version string }

type syntheticSession struct {
	id   string
	used time.Time
}

func newSessionIDAssigner() *sessionIDAssigner {
	return &sessionIDAssigner{byKey: map[sessionlessClientKey]*syntheticSession{}}
}

// assignSessionID sets the session ID of a caller that has none.
func (a *sessionIDAssigner) assignSessionID(c *auth.Caller) {
	if c.SessionID == "" {
		c.SessionID = a.sessionIDFor(c.Actor.Principal(), c.ClientName, c.ClientVersion)
	}
}

// sessionIDFor returns the session ID of a client.
func (a *sessionIDAssigner) sessionIDFor(actor, client, version string) string {
	now := time.Now()
	key := sessionlessClientKey{actor, client, version}
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.byKey[key]
	if s == nil || now.Sub(s.used) > sessionlessTimeout {
		evictWhenFull(a.byKey, maxSessionless, func(s *syntheticSession) bool { return now.Sub(s.used) > sessionlessTimeout })
		s = &syntheticSession{id: rand.Text()}
		a.byKey[key] = s
	}
	s.used = now
	return s.id
}

// evictWhenFull makes room in a map with the maximum number of entries, most. It deletes the expired entries, and all
// if that is not enough. As a consequence, records only lack a session ID or the search that found a tool.
func evictWhenFull[K comparable, V any](all map[K]V, most int, over func(V) bool) {
	if len(all) < most {
		return
	}
	maps.DeleteFunc(all, func(_ K, one V) bool { return over(one) })
	if len(all) >= most {
		clear(all)
	}
}
