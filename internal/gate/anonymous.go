package gate

import (
	"crypto/rand"
	"maps"
	"sync"
	"time"

	"mcpproxy/internal/config/auth"
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
		c.SessionID = a.find(c.Actor.Principal(), c.ClientName, c.ClientVersion)
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
		forget(a.byKey, maxAnonymous, func(s *anonymousSession) bool { return now.Sub(s.used) > anonymousQuiet })
		s = &anonymousSession{id: rand.Text()}
		a.byKey[key] = s
	}
	s.used = now
	return s.id
}

// forget makes room among what is remembered when there is as much as may be: it
// drops what is over, and if that is not enough all of it. Records then only miss
// an id, or how a tool was found.
func forget[K comparable, V any](all map[K]V, most int, over func(V) bool) {
	if len(all) < most {
		return
	}
	maps.DeleteFunc(all, func(_ K, one V) bool { return over(one) })
	if len(all) >= most {
		clear(all)
	}
}
