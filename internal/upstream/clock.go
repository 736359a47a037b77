package upstream

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"mcpproxy/internal/strictjson"
)

// askTime is for how long a clock stands still at the most, and for how long an
// answer of the client is waited for.
const askTime = 30 * time.Minute

// Clock ends a request that takes too long. It stands still while the client is
// asked something: a person may think for as long as they could if the client
// spoke to the server itself.
type Clock struct {
	mu     sync.Mutex // guards what follows
	timer  *time.Timer
	stands bool
	left   time.Duration // while it stands
	due    time.Time     // while it runs
}

// StartClock gives a context that ends when the time is up, which its cause
// says, or with end.
func StartClock(ctx context.Context, limit time.Duration) (timed context.Context, c *Clock, end func()) {
	timed, cancel := context.WithCancelCause(ctx)
	c = &Clock{due: time.Now().Add(limit)}
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
	if c.stands = still; still {
		c.left = time.Until(c.due)
		c.timer.Reset(askTime)
		return
	}
	c.due = time.Now().Add(c.left)
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
	clock.stand(len(a.open) > 0)
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.clocks, clock)
	}
}

// hear takes note of what the server says to the client. Who is pinged is not
// asked anything.
func (a *asks) hear(e *Event) {
	switch {
	case e.ID == nil && e.Method == methodCancelled: // the server no longer wants to know
		a.answered(strictjson.Find(e.Params, "requestId"))
	case e.ID == nil || e.Method == methodPing:
	default:
		a.mu.Lock()
		defer a.mu.Unlock()
		if len(a.open) >= maxAsked {
			return
		}
		if a.open == nil {
			a.open = map[string]time.Time{}
		}
		a.open[askKey(e.ID)] = time.Now()
		a.turn()
	}
}

func (a *asks) answered(id []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.open, askKey(id))
	a.turn()
}

// askKey is the same for all ways to write an id.
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
