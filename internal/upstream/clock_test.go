//go:build unix

package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpproxy/internal/mcptest"
)

// TestClockStandsWhileAPersonIsAsked: the time of a call is the time that its
// server takes.
func TestClockStandsWhileAPersonIsAsked(t *testing.T) {
	const limit = time.Minute
	for name, tt := range map[string]struct {
		do   func(hear func(Event), c *Conversation) // since the call began
		ends time.Duration                           // of the call
	}{
		"nobody is asked": {func(hear func(Event), c *Conversation) {}, limit},
		"asked, and answers": {func(hear func(Event), c *Conversation) {
			time.Sleep(10 * time.Second)
			hear(question(`"é"`))
			time.Sleep(5 * time.Minute)
			c.asks.forget(askKey([]byte(`"\u00e9"`)))
		}, limit + 5*time.Minute},
		"asked twice at a time": {func(hear func(Event), c *Conversation) {
			hear(question("1"))
			time.Sleep(time.Minute)
			hear(question("2"))
			c.asks.forget("1")
			time.Sleep(time.Minute)
			c.asks.forget("2")
		}, limit + 2*time.Minute},
		"the server takes it back": {func(hear func(Event), c *Conversation) {
			hear(question("1"))
			time.Sleep(time.Minute)
			hear(Event{Method: methodCancelled, Params: json.RawMessage(`{"requestId":1}`)})
		}, limit + time.Minute},
		"asked again and again": {func(hear func(Event), c *Conversation) {
			for range 100 {
				hear(question("1"))
				time.Sleep(3 * time.Minute)
				c.asks.forget("1")
			}
		}, limit + askTime},
		"nobody answers": {func(hear func(Event), c *Conversation) { hear(question("1")) }, limit + askTime},
		"late":           {func(hear func(Event), c *Conversation) { time.Sleep(2 * limit); hear(question("1")) }, limit},
		"a ping": {func(hear func(Event), c *Conversation) {
			hear(Event{Method: methodPing, ID: json.RawMessage("1")})
		}, limit},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &Conversation{}
				began := time.Now()
				ctx, clock, end := StartClock(t.Context(), limit)
				defer end()
				defer c.Time(clock)()
				r, done := c.noting(&Request{Events: func(Event) {}})
				go tt.do(r.Events, c)
				<-ctx.Done()
				if took := time.Since(began); took != tt.ends || !TimeIsUp(ctx) {
					t.Errorf("ended after %v with %v, want %v", took, context.Cause(ctx), tt.ends)
				}
				synctest.Wait()
				time.Sleep(6 * time.Hour) // whoever asks is done
				if done(); len(c.asks.open) > 0 {
					t.Errorf("%v is left behind", c.asks.open)
				}
			})
		})
	}
}

func question(id string) Event { return Event{Method: "elicitation/create", ID: json.RawMessage(id)} }

// TestCallsWaitForPersons: over stdio, HTTP and the bridge to a server of the
// modern revision, which asks in its answers.
func TestCallsWaitForPersons(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.Apply([]Spec{stdioSpec(t, "pipe", "asker"), httpSpec(t, "http", asker()),
		{Name: "modern", Transport: HTTP, URL: mcptest.Serve(t, &modernServer{}).URL}})
	for _, server := range []string{"pipe", "http", "modern"} {
		f.untilReady(t, server, 0)
		c := f.converse(t, server)
		call := func() (Reply, error) {
			ctx, clock, end := StartClock(t.Context(), 500*time.Millisecond)
			defer end()
			defer c.Time(clock)()
			return f.Call(ctx, server, Call{Tool: "ask", Passed: &Passed{Conversation: c, Request: Request{ID: json.RawMessage("1"),
				Method: methodCallTool, Params: json.RawMessage(`{"name":"ask","arguments":{}}`),
				Events: func(e Event) {
					if e.ID == nil {
						return
					}
					id, answer := bytes.Clone(e.ID), json.RawMessage(`{"got":"`+e.Method+`"}`)
					go func() {
						time.Sleep(time.Second)
						if err := c.Respond(t.Context(), id, answer, nil); err != nil {
							t.Error(err)
						}
					}()
				}}}})
		}
		if reply, err := call(); err != nil || reply.Error != nil || strings.Contains(string(reply.Result), "isError") {
			t.Errorf("%s: %s %+v %v", server, reply.Result, reply.Error, err)
		}
	}
}

// TestOldQuestionsAreForgotten: one that was asked on the stream of the session
// and is never answered does not stop the clocks of later calls.
func TestOldQuestionsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Conversation{}
		e := question("1")
		c.asks.hear(&e)
		limited := func() (took time.Duration) {
			began := time.Now()
			ctx, clock, end := StartClock(t.Context(), time.Minute)
			defer end()
			defer c.Time(clock)()
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
	ctx, clock, end := StartClock(t.Context(), time.Hour)
	end()
	clock.stand(true) // nothing happens any more
	if !errors.Is(ctx.Err(), context.Canceled) || TimeIsUp(ctx) {
		t.Errorf("%v, %v", ctx.Err(), context.Cause(ctx))
	}
	parent, cancel := context.WithCancelCause(t.Context())
	ctx, _, end = StartClock(parent, time.Hour)
	defer end()
	cancel(&Cancelled{})
	var cancelled *Cancelled
	if !errors.As(context.Cause(ctx), &cancelled) || TimeIsUp(ctx) {
		t.Errorf("%v", context.Cause(ctx))
	}
}
