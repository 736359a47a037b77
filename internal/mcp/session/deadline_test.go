package session

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func question(id string) Event { return Event{Method: "elicitation/create", ID: json.RawMessage(id)} }

// TestTimeoutPausesDuringQuestions checks that only the time that the server takes counts towards the time limit of a
// call.
func TestTimeoutPausesDuringQuestions(t *testing.T) {
	const limit = time.Minute
	for name, tt := range map[string]struct {
		do   func(hear func(Event), a *ServerQuestionTracker) // starts when the call starts
		ends time.Duration                                    // duration of the call
	}{
		"nobody is asked": {func(hear func(Event), a *ServerQuestionTracker) {}, limit},
		"asked, and answers": {func(hear func(Event), a *ServerQuestionTracker) {
			time.Sleep(10 * time.Second)
			hear(question(`"é"`))
			time.Sleep(5 * time.Minute)
			a.MarkAnswered([]byte(`"\u00e9"`))
		}, limit + 5*time.Minute},
		"asked twice at a time": {func(hear func(Event), a *ServerQuestionTracker) {
			hear(question("1"))
			time.Sleep(time.Minute)
			hear(question("2"))
			a.MarkAnswered([]byte("1"))
			time.Sleep(time.Minute)
			a.MarkAnswered([]byte("2"))
		}, limit + 2*time.Minute},
		"the server takes it back": {func(hear func(Event), a *ServerQuestionTracker) {
			hear(question("1"))
			time.Sleep(time.Minute)
			hear(Event{Method: "notifications/cancelled", Params: json.RawMessage(`{"requestId":1}`)})
		}, limit + time.Minute},
		"asked again and again": {func(hear func(Event), a *ServerQuestionTracker) {
			for range 100 {
				hear(question("1"))
				time.Sleep(3 * time.Minute)
				a.MarkAnswered([]byte("1"))
			}
		}, limit + maxPause},
		"no one answers": {func(hear func(Event), a *ServerQuestionTracker) { hear(question("1")) }, limit + maxPause},
		"late":           {func(hear func(Event), a *ServerQuestionTracker) { time.Sleep(2 * limit); hear(question("1")) }, limit},
		"a ping": {func(hear func(Event), a *ServerQuestionTracker) {
			hear(Event{Method: "ping", ID: json.RawMessage("1")})
		}, limit},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var a ServerQuestionTracker
				ctx, clock, end := StartPausableDeadline(t.Context(), limit)
				defer end()
				defer a.PauseWhileAsked(clock)()
				start := time.Now()
				done := make(chan struct{})
				go func() {
					defer close(done)
					tt.do(func(e Event) { a.TrackQuestion(&e) }, &a)
				}()
				<-ctx.Done()
				if took := time.Since(start); took != tt.ends {
					t.Errorf("the call ended after %v, want %v", took, tt.ends)
				}
				if !IsTimedOut(ctx) {
					t.Errorf("cause %v", context.Cause(ctx))
				}
				<-done
			})
		})
	}
}

// TestQuestionsEndWithTheirRequest checks that a question of a request that has ended does not pause the deadline of a
// later request.
func TestQuestionsEndWithTheirRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a ServerQuestionTracker
		say, done := a.WrapToTrackQuestions(func(Event) {})
		say(question("1"))
		say(question("2"))
		done()
		ctx, clock, end := StartPausableDeadline(t.Context(), time.Minute)
		defer end()
		defer a.PauseWhileAsked(clock)()
		start := time.Now()
		<-ctx.Done()
		if took := time.Since(start); took != time.Minute {
			t.Errorf("ended after %v", took)
		}
	})
}

func TestNoQuestions(t *testing.T) {
	var a *ServerQuestionTracker
	if say, done := a.WrapToTrackQuestions(nil); say != nil {
		t.Error("a nil say did not stay nil")
	} else {
		done()
	}
	a.PauseWhileAsked(nil)()
}

// TestOldQuestionsAreForgotten checks that an unanswered question on the session's own stream does not pause the
// deadlines of later calls.
func TestOldQuestionsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a ServerQuestionTracker
		e := question("1")
		a.TrackQuestion(&e)
		limited := func() (took time.Duration) {
			began := time.Now()
			ctx, clock, end := StartPausableDeadline(t.Context(), time.Minute)
			defer end()
			defer a.PauseWhileAsked(clock)()
			<-ctx.Done()
			return time.Since(began)
		}
		time.Sleep(maxPause - time.Minute)
		beside := make(chan time.Duration)
		go func() { beside <- limited() }()
		time.Sleep(2 * time.Minute)
		if took := limited(); took != time.Minute {
			t.Errorf("a later call ended after %v", took)
		}
		if took := <-beside; took != 3*time.Minute {
			t.Errorf("the call that began during the question ended after %v", took)
		}
	})
}

func TestClockEnds(t *testing.T) {
	ctx, clock, end := StartPausableDeadline(t.Context(), time.Hour)
	end()
	clock.setPaused(true) // has no effect after the end
	if !errors.Is(ctx.Err(), context.Canceled) || IsTimedOut(ctx) {
		t.Errorf("got %v, %v", ctx.Err(), context.Cause(ctx))
	}
	parent, cancel := context.WithCancelCause(t.Context())
	ctx, _, end = StartPausableDeadline(parent, time.Hour)
	defer end()
	cancel(&ClientCancelledError{})
	var cancelled *ClientCancelledError
	if !errors.As(context.Cause(ctx), &cancelled) || IsTimedOut(ctx) {
		t.Errorf("got %v", context.Cause(ctx))
	}
}
