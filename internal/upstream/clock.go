package upstream

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"mcpproxy/internal/strictjson"
)

// askTime is for how long a clock stands still altogether, and an answer of the
// client is waited for.
const askTime = 10 * time.Minute

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

// StartClock gives a context that ends when the time is up, which its cause
// says, or with end.
func StartClock(ctx context.Context, limit time.Duration) (timed context.Context, c *Clock, end func()) {
	timed, cancel := context.WithCancelCause(ctx)
	c = &Clock{since: time.Now(), left: limit, free: askTime}
	c.timer = time.AfterFunc(limit, func() { cancel(context.DeadlineExceeded) })
	return timed, c, func() {
		c.timer.Stop()
		cancel(nil)
	}
}

// TimeIsUp says whether ctx has ended since a clock or a time limit has run out.
func TimeIsUp(ctx context.Context) bool {
	return errors.Is(context.Cause(ctx), context.DeadlineExceeded)
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

// asks are the requests of a server that its client has not answered, and the
// clocks that stand still meanwhile.
type asks struct {
	mu     sync.Mutex // guards what follows
	open   map[string]time.Time
	clocks map[*Clock]bool
}

// Time has the clock of a request stand still while the client of c is asked
// something, until done. A nil conversation asks nobody.
func (c *Conversation) Time(clock *Clock) (done func()) {
	if c == nil {
		return func() {}
	}
	a := &c.asks
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.clocks == nil {
		a.clocks = map[*Clock]bool{}
	}
	a.clocks[clock] = true
	maps.DeleteFunc(a.open, func(_ string, asked time.Time) bool { return time.Since(asked) > askTime })
	a.turn()
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.clocks, clock)
	}
}

// hear takes note of what the server says to the client, and gives the key of
// what it asks, "" when nothing: who is pinged is not asked anything.
func (a *asks) hear(e *Event) (key string) {
	switch {
	case e.ID == nil && e.Method == methodCancelled: // the server no longer wants to know
		a.forget(askKey(strictjson.Find(e.Params, "requestId")))
		return ""
	case e.ID == nil || e.Method == methodPing:
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

// forget takes out what is not to be answered any more.
func (a *asks) forget(keys ...string) {
	if len(keys) == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, key := range keys {
		delete(a.open, key)
	}
	a.turn()
}

// noting is r with note taken of what the client is asked meanwhile, which goes
// with it: done forgets it.
func (c *Conversation) noting(r *Request) (noted *Request, done func()) {
	if c == nil || r.Events == nil {
		return r, func() {}
	}
	q, say := *r, r.Events
	var (
		mu   sync.Mutex
		keys []string
	)
	q.Events = func(e Event) {
		if key := c.asks.hear(&e); key != "" {
			mu.Lock()
			keys = append(keys, key)
			mu.Unlock()
		}
		say(e)
	}
	return &q, func() {
		mu.Lock()
		defer mu.Unlock()
		c.asks.forget(keys...)
	}
}

// askKey is the same for all ways to write a text as an id.
func askKey(id []byte) string {
	if text, ok := strictjson.String(id); ok {
		return `"` + text
	}
	return string(id)
}

// turn stops the clocks or lets them run. The lock is held.
func (a *asks) turn() {
	for clock := range a.clocks {
		clock.stand(len(a.open) > 0)
	}
}
