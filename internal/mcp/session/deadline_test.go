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

// TestClockStandsWhileAPersonIsAsked: the time of a call is the time that its
// server takes.
func TestClockStandsWhileAPersonIsAsked(t *testing.T) {
	const limit = time.Minute
	for name, tt := range map[string]struct {
		do   func(hear func(Event), a *Asks) // since the call began
		ends time.Duration                   // of the call
	}{
		"nobody is asked": {func(hear func(Event), a *Asks) {}, limit},
		"asked, and answers": {func(hear func(Event), a *Asks) {
			time.Sleep(10 * time.Second)
			hear(question(`"é"`))
			time.Sleep(5 * time.Minute)
			a.Answered([]byte(`"\u00e9"`))
		}, limit + 5*time.Minute},
		"asked twice at a time": {func(hear func(Event), a *Asks) {
			hear(question("1"))
			time.Sleep(time.Minute)
			hear(question("2"))
			a.Answered([]byte("1"))
			time.Sleep(time.Minute)
			a.Answered([]byte("2"))
		}, limit + 2*time.Minute},
		"the server takes it back": {func(hear func(Event), a *Asks) {
			hear(question("1"))
			time.Sleep(time.Minute)
			hear(Event{Method: "notifications/cancelled", Params: json.RawMessage(`{"requestId":1}`)})
		}, limit + time.Minute},
		"asked again and again": {func(hear func(Event), a *Asks) {
			for range 100 {
				hear(question("1"))
				time.Sleep(3 * time.Minute)
				a.Answered([]byte("1"))
			}
		}, limit + askTime},
		"nobody answers": {func(hear func(Event), a *Asks) { hear(question("1")) }, limit + askTime},
		"late":           {func(hear func(Event), a *Asks) { time.Sleep(2 * limit); hear(question("1")) }, limit},
		"a ping":         {func(hear func(Event), a *Asks) { hear(Event{Method: "ping", ID: json.RawMessage("1")}) }, limit},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var a Asks
				ctx, clock, end := StartDeadline(t.Context(), limit)
				defer end()
				defer a.Pausing(clock)()
				start := time.Now()
				done := make(chan struct{})
				go func() {
					defer close(done)
					tt.do(func(e Event) { a.Track(&e) }, &a)
				}()
				<-ctx.Done()
				if took := time.Since(start); took != tt.ends {
					t.Errorf("ended after %v, want %v", took, tt.ends)
				}
				if !TimedOut(ctx) {
					t.Errorf("cause %v", context.Cause(ctx))
				}
				<-done
			})
		})
	}
}

// TestRequestTakesItsQuestionsWithIt: what was asked during a request that has
// ended stops no clock of a later one.
func TestRequestTakesItsQuestionsWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a Asks
		say, done := a.Tracking(func(Event) {})
		say(question("1"))
		say(question("2"))
		done()
		ctx, clock, end := StartDeadline(t.Context(), time.Minute)
		defer end()
		defer a.Pausing(clock)()
		start := time.Now()
		<-ctx.Done()
		if took := time.Since(start); took != time.Minute {
			t.Errorf("ended after %v", took)
		}
	})
}

func TestNobodyIsAsked(t *testing.T) {
	var a *Asks
	if say, done := a.Tracking(nil); say != nil {
		t.Error("there is somebody to tell")
	} else {
		done()
	}
	a.Pausing(nil)()
}

// TestOldQuestionsAreForgotten: one that was asked on the stream of the session
// and is never answered does not stop the clocks of later calls.
func TestOldQuestionsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a Asks
		e := question("1")
		a.Track(&e)
		limited := func() (took time.Duration) {
			began := time.Now()
			ctx, clock, end := StartDeadline(t.Context(), time.Minute)
			defer end()
			defer a.Pausing(clock)()
			<-ctx.Done()
			return time.Since(began)
		}
		time.Sleep(askTime - time.Minute)
		beside := make(chan time.Duration)
		go func() { beside <- limited() }()
		time.Sleep(2 * time.Minute)
		if took := limited(); took != time.Minute {
			t.Errorf("a later call ended after %v", took)
		}
		if took := <-beside; took != 3*time.Minute {
			t.Errorf("the call that began beside the question ended after %v", took)
		}
	})
}

func TestClockEnds(t *testing.T) {
	ctx, clock, end := StartDeadline(t.Context(), time.Hour)
	end()
	clock.pause(true) // nothing happens any more
	if !errors.Is(ctx.Err(), context.Canceled) || TimedOut(ctx) {
		t.Errorf("%v, %v", ctx.Err(), context.Cause(ctx))
	}
	parent, cancel := context.WithCancelCause(t.Context())
	ctx, _, end = StartDeadline(parent, time.Hour)
	defer end()
	cancel(&Cancelled{})
	var cancelled *Cancelled
	if !errors.As(context.Cause(ctx), &cancelled) || TimedOut(ctx) {
		t.Errorf("%v", context.Cause(ctx))
	}
}
