package upstream

import (
	"context"
	"math"
	"sync"
	"time"

	"mcpproxy/internal/problem"
)

// wishes are what was asked for besides calls: that a server runs, and that it
// is started anew.
type wishes struct {
	mu         sync.Mutex         // guards what follows
	again      bool               // a restart was asked for
	restarted  time.Time          // when, the last time
	restarting bool               // for an agent: it waits until nothing is in flight
	hasty      bool               // the next try was asked for, and goes before others
	interrupt  context.CancelFunc // ends the try or the connection for a restart
}

// The bounds of restarts that agents ask for.
const (
	restartPause = 10 * time.Second // after the last one, whoever asked for that
	quietTime    = 3 * time.Second  // how long calls in flight are waited for, and new ones wait
	quietLook    = 5 * time.Millisecond
)

// run wishes that the server runs.
func (w *wishes) run() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hasty = true
}

// restart wishes that it is started anew, and ends the try or the connection.
func (w *wishes) restart() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.again, w.restarted = true, time.Now()
	if w.interrupt != nil {
		w.interrupt()
	}
}

// restartable returns a context that a restart ends, too.
func (w *wishes) restartable(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.interrupt = cancel
	if w.again {
		cancel()
	}
	return ctx, cancel
}

// isRestart reports whether a restart was asked for.
func (w *wishes) isRestart() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.again
}

// isHasty reports whether the next try was asked for.
func (w *wishes) isHasty() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.hasty
}

// takeRestart reports, once, whether a restart was asked for.
func (w *wishes) takeRestart() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	again := w.again
	w.again, w.hasty = false, w.hasty || again
	return again
}

// take reports, once, whether a server that rests is to be started; waited says
// that somebody waits for it.
func (w *wishes) take(waited bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.again, w.hasty = false, waited || w.hasty || w.again
	return w.hasty
}

// met forgets the wish that the server runs: it does.
func (w *wishes) met() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hasty = false
}

// claim takes the turn of a restart that an agent asks for, of a server in that
// phase, or says when it may be asked for.
func (w *wishes) claim(server string, phase Phase, now time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	wait := w.restarted.Add(restartPause).Sub(now)
	refused := func(why string, wait time.Duration) error {
		seconds := int(math.Ceil(wait.Seconds()))
		return problem.Newf(problem.Overloaded, "Server '%s' is not restarted: %s.", server, why).
			WithHint("Ask again in "+(time.Duration(seconds)*time.Second).String()+" if it is still needed; calls reach the server without a restart.").
			With("server", server).With("retry_after", seconds)
	}
	switch {
	case w.restarting || w.again:
		return refused("it is being restarted already", max(wait, quietTime))
	case phase == Connecting || phase == Stopped:
		return refused("it is being started", max(wait, restartPause))
	case wait > 0:
		return refused("it was a moment ago", wait)
	}
	w.restarting, w.restarted = true, now
	return nil
}

// release ends the turn.
func (w *wishes) release() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.restarting = false
}
