package door

import (
	"crypto/rand"
	"sync"
	"time"

	"mcpproxy/internal/auth"
)

// The bounds of what is remembered of clients without a session.
const (
	maxAnonymous   = 1_000
	anonymousQuiet = 30 * time.Minute
)

// anonymous are the clients that have no session. They get the id of one for the
// record: the same actor and client the same, until it was silent for half an hour.
type anonymous struct {
	mu    sync.Mutex // guards what follows
	byKey map[anonymousKey]*anonymousSession
}

type anonymousKey struct{ actor, client, version string }

type anonymousSession struct {
	id   string
	used time.Time
}

func newAnonymous() *anonymous {
	return &anonymous{byKey: map[anonymousKey]*anonymousSession{}}
}

// name puts a session's id into a caller that has none.
func (a *anonymous) name(c *auth.Caller) {
	if c.SessionID == "" {
		c.SessionID = a.find(c.Actor.String(), c.ClientName, c.ClientVersion)
	}
}

// find returns the id for the record.
func (a *anonymous) find(actor, client, version string) string {
	now := time.Now()
	key := anonymousKey{actor, client, version}
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.byKey[key]
	if s == nil || now.Sub(s.used) > anonymousQuiet {
		if len(a.byKey) >= maxAnonymous {
			a.tidy(now)
		}
		s = &anonymousSession{id: rand.Text()}
		a.byKey[key] = s
	}
	s.used = now
	return s.id
}

// tidy forgets the sessions that are over, and if that is not enough all of
// them: they only lose their ids. The lock is held.
func (a *anonymous) tidy(now time.Time) {
	for key, s := range a.byKey {
		if now.Sub(s.used) > anonymousQuiet {
			delete(a.byKey, key)
		}
	}
	if len(a.byKey) >= maxAnonymous {
		clear(a.byKey)
	}
}
