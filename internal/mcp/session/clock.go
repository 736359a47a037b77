package session

import (
	"context"
	"encoding/json"
	"maps"
	"sync"
	"time"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/wirejson"
)

// askTime is for how long a clock stands still altogether, and an answer of the
// client is waited for.
const askTime = 10 * time.Minute

// maxAsked bounds the questions that one client has open.
const maxAsked = 100

// Clock ends a request that takes too long. It stands still while the client is
// asked something: a person may think longer than a server may work.
type Clock struct {
	mu     sync.Mutex // guards what follows
	timer  *time.Timer
	stands bool
	since  time.Time     // it stands, or runs
	left   time.Duration // to run
	free   time.Duration // to stand; then it runs on all the same
}

// StartClock returns a context that ends when the time is up, which TimeIsUp
// reports, or with end.
func StartClock(ctx context.Context, limit time.Duration) (timed context.Context, _ *Clock, end func()) {
	timed, cancel := context.WithCancelCause(ctx)
	c := &Clock{since: time.Now(), left: limit, free: askTime}
	c.timer = time.AfterFunc(limit, func() { cancel(context.DeadlineExceeded) })
	return timed, c, func() {
		c.timer.Stop()
		cancel(nil)
	}
}

// stand stops the clock, or lets it run again.
func (c *Clock) stand(still bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stands == still || !c.timer.Stop() { // then it has run out, or ended
		return
	}
	now := time.Now()
	spent := now.Sub(c.since)
	if c.stands {
		stood := min(spent, c.free)
		c.free -= stood
		spent -= stood
	}
	c.left -= spent
	c.stands, c.since = still, now
	if still {
		c.timer.Reset(c.free + c.left)
		return
	}
	c.timer.Reset(c.left)
}

// Asks are the questions of a server that one client has not answered, and the
// clocks that stand still meanwhile. Its zero value is ready for use; a nil one
// is of a client that is asked nothing.
type Asks struct {
	mu     sync.Mutex // guards what follows
	open   map[string]time.Time
	clocks map[*Clock]bool
}

// Time has the clock of a request stand still while the client is asked
// something, until done.
func (a *Asks) Time(clock *Clock) (done func()) {
	if a == nil {
		return func() {}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.clocks == nil {
		a.clocks = map[*Clock]bool{}
	}
	a.clocks[clock] = true
	asked := len(a.open)
	maps.DeleteFunc(a.open, func(_ string, asked time.Time) bool { return time.Since(asked) > askTime })
	if len(a.open) < asked {
		a.turn()
	} else if asked > 0 {
		clock.stand(true)
	}
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.clocks, clock)
	}
}

// Noting returns say with note taken of what it asks. done forgets what is not
// answered when the request has ended. A nil say stays nil.
func (a *Asks) Noting(say func(Event)) (noting func(Event), done func()) {
	if a == nil || say == nil {
		return say, func() {}
	}
	var keys []string // Say never runs twice at once
	return func(e Event) {
			if key := a.Hear(&e); key != "" {
				keys = append(keys, key)
			}
			say(e)
		}, func() {
			for _, key := range keys {
				a.forget(key)
			}
		}
}

// Hear takes note of what the server says to the client, and returns the key of
// what it asks, "" when nothing: who is pinged is not asked anything.
func (a *Asks) Hear(e *Event) (key string) {
	switch {
	case e.ID == nil && e.Method == mcp.Cancelled: // the server no longer wants to know
		a.Answered(wirejson.Find(e.Params, "requestId"))
		return ""
	case e.ID == nil || e.Method == mcp.Ping:
		return ""
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.open) >= maxAsked {
		return ""
	}
	if a.open == nil {
		a.open = map[string]time.Time{}
	}
	key = askKey(e.ID)
	a.open[key] = time.Now()
	a.turn()
	return key
}

// Answered takes out the question of that id: what the server takes from now on
// is its own time.
func (a *Asks) Answered(id json.RawMessage) { a.forget(askKey(id)) }

func (a *Asks) forget(key string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.open, key)
	a.turn()
}

// askKey is the same for all ways to write a text as an id.
func askKey(id []byte) string {
	if text, ok := wirejson.String(id); ok {
		return `"` + text
	}
	return string(id)
}

// turn stops the clocks or lets them run. The lock is held.
func (a *Asks) turn() {
	for clock := range a.clocks {
		clock.stand(len(a.open) > 0)
	}
}
