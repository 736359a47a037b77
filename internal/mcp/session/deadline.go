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

// maxPause limits the total pause of a deadline, and the wait for a client's answer.
const maxPause = 10 * time.Minute

// maxQuestions limits the open questions of one client.
const maxQuestions = 100

// PausableDeadline cancels a request that takes too long. It pauses while a server waits for the client's answer,
// because a user may take longer than a server may.
type PausableDeadline struct {
	mu        sync.Mutex // guards the following fields
	timer     *time.Timer
	paused    bool
	since     time.Time     // start of the current pause or run
	timeLeft  time.Duration // until the deadline
	pauseLeft time.Duration // remaining time of pauses; after it the time runs again
}

// StartPausableDeadline returns a context that is cancelled after limit (IsTimedOut reports that) or by end.
func StartPausableDeadline(ctx context.Context, limit time.Duration) (timed context.Context, _ *PausableDeadline, end func()) {
	timed, cancel := context.WithCancelCause(ctx)
	c := &PausableDeadline{since: time.Now(), timeLeft: limit, pauseLeft: maxPause}
	c.timer = time.AfterFunc(limit, func() { cancel(context.DeadlineExceeded) })
	return timed, c, func() {
		c.timer.Stop()
		cancel(nil)
	}
}

// setPaused stops the timer, or starts it again.
func (c *PausableDeadline) setPaused(still bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.paused == still || !c.timer.Stop() { // already expired or ended
		return
	}
	now := time.Now()
	spent := now.Sub(c.since)
	if c.paused {
		stood := min(spent, c.pauseLeft)
		c.pauseLeft -= stood
		spent -= stood
	}
	c.timeLeft -= spent
	c.paused, c.since = still, now
	if still {
		c.timer.Reset(c.pauseLeft + c.timeLeft)
		return
	}
	c.timer.Reset(c.timeLeft)
}

// ServerQuestionTracker tracks the questions of servers that one client has not answered, and pauses the deadlines of
// its requests in the meantime. The zero value is ready for use. A nil *ServerQuestionTracker is for a client that
// cannot receive questions.
type ServerQuestionTracker struct {
	mu        sync.Mutex // guards the following fields
	open      map[string]time.Time
	deadlines map[*PausableDeadline]bool
}

// PauseWhileAsked pauses a deadline while the client has open questions, until done is called.
func (a *ServerQuestionTracker) PauseWhileAsked(clock *PausableDeadline) (done func()) {
	if a == nil {
		return func() {}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.deadlines == nil {
		a.deadlines = map[*PausableDeadline]bool{}
	}
	a.deadlines[clock] = true
	asked := len(a.open)
	maps.DeleteFunc(a.open, func(_ string, asked time.Time) bool { return time.Since(asked) > maxPause })
	if len(a.open) < asked {
		a.pauseOrResumeDeadlines()
	} else if asked > 0 {
		clock.setPaused(true)
	}
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.deadlines, clock)
	}
}

// WrapToTrackQuestions wraps say so that questions are tracked. done forgets the unanswered ones when the request
// ends. A nil say stays nil.
func (a *ServerQuestionTracker) WrapToTrackQuestions(say func(Event)) (noting func(Event), done func()) {
	if a == nil || say == nil {
		return say, func() {}
	}
	var keys []string // say never runs concurrently
	return func(e Event) {
			if key := a.TrackQuestion(&e); key != "" {
				keys = append(keys, key)
			}
			say(e)
		}, func() {
			for _, key := range keys {
				a.removeQuestion(key)
			}
		}
}

// TrackQuestion records a question of the server to the client and returns its key, or "" if e is not a question. A ping
// is not a question. It removes a question that the server withdraws.
func (a *ServerQuestionTracker) TrackQuestion(e *Event) (key string) {
	switch {
	case e.ID == nil && e.Method == mcp.Cancelled: // the server withdraws its question
		a.MarkAnswered(wirejson.Find(e.Params, "requestId"))
		return ""
	case e.ID == nil || e.Method == mcp.Ping:
		return ""
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.open) >= maxQuestions {
		return ""
	}
	if a.open == nil {
		a.open = map[string]time.Time{}
	}
	key = questionKey(e.ID)
	a.open[key] = time.Now()
	a.pauseOrResumeDeadlines()
	return key
}

// MarkAnswered removes the question with this ID. From now on, the time that the server takes counts again.
func (a *ServerQuestionTracker) MarkAnswered(id json.RawMessage) { a.removeQuestion(questionKey(id)) }

func (a *ServerQuestionTracker) removeQuestion(key string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.open, key)
	a.pauseOrResumeDeadlines()
}

// questionKey returns the same key for all JSON spellings of an ID.
func questionKey(id []byte) string {
	if text, ok := wirejson.String(id); ok {
		return `"` + text
	}
	return string(id)
}

// pauseOrResumeDeadlines pauses or resumes the deadlines. The lock is held.
func (a *ServerQuestionTracker) pauseOrResumeDeadlines() {
	for clock := range a.deadlines {
		clock.setPaused(len(a.open) > 0)
	}
}
