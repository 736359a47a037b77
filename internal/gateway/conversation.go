package gateway

import (
	"crypto/rand"
	"sync"
	"time"
)

// The bounds of conversations.
const (
	maxConverse   = 1_000
	converseQuiet = 30 * time.Minute
)

// conversations give the clients that have no session something like one for
// the record: the same actor and client, until it was silent for half an hour.
type conversations struct {
	mu    sync.Mutex // guards what follows
	byKey map[conversationKey]*conversation
}

type conversationKey struct{ actor, client, version string }

type conversation struct {
	record string
	used   time.Time
}

func newConversations() *conversations {
	return &conversations{byKey: map[conversationKey]*conversation{}}
}

// find gives the id for the record.
func (cs *conversations) find(actor, client, version string) string {
	now := time.Now()
	key := conversationKey{actor, client, version}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c := cs.byKey[key]
	if c == nil || now.Sub(c.used) > converseQuiet {
		if len(cs.byKey) >= maxConverse {
			cs.tidy(now)
		}
		c = &conversation{record: rand.Text()}
		cs.byKey[key] = c
	}
	c.used = now
	return c.record
}

// tidy forgets the conversations that are over, and if that is not enough all
// of them: they only lose their ids. The lock is held.
func (cs *conversations) tidy(now time.Time) {
	for key, c := range cs.byKey {
		if now.Sub(c.used) > converseQuiet {
			delete(cs.byKey, key)
		}
	}
	if len(cs.byKey) >= maxConverse {
		clear(cs.byKey)
	}
}
