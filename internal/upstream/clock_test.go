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
	ask := func(id string) Event { return Event{Method: "elicitation/create", ID: json.RawMessage(id)} }
	for name, tt := range map[string]struct {
		do   func(c *Conversation) // since the call began
		ends time.Duration         // of the call
	}{
		"nobody is asked": {func(c *Conversation) {}, limit},
		"asked, and answers": {func(c *Conversation) {
			time.Sleep(10 * time.Second)
			c.noting(func(Event) {})(ask(`"é"`))
			time.Sleep(20 * time.Minute)
			c.asks.answered([]byte(`"\u00e9"`))
		}, limit + 20*time.Minute},
		"asked twice at a time": {func(c *Conversation) {
			hear := c.noting(func(Event) {})
			hear(ask("1"))
			time.Sleep(time.Minute)
			hear(ask("2"))
			c.asks.answered([]byte("1"))
			time.Sleep(time.Minute)
			c.asks.answered([]byte("2"))
		}, limit + 2*time.Minute},
		"the server takes it back": {func(c *Conversation) {
			hear := c.noting(func(Event) {})
			hear(ask("1"))
			time.Sleep(time.Minute)
			hear(Event{Method: methodCancelled, Params: json.RawMessage(`{"requestId":1}`)})
		}, limit + time.Minute},
		"nobody answers": {func(c *Conversation) { c.noting(func(Event) {})(ask("1")) }, askTime},
		"a ping": {func(c *Conversation) {
			c.noting(func(Event) {})(Event{Method: methodPing, ID: json.RawMessage("1")})
		}, limit},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &Conversation{}
				began := time.Now()
				ctx, clock, end := StartClock(t.Context(), limit)
				defer end()
				defer c.Time(clock)()
				go tt.do(c)
				<-ctx.Done()
				if took := time.Since(began); took != tt.ends || !TimeIsUp(ctx) {
					t.Errorf("ended after %v with %v, want %v", took, context.Cause(ctx), tt.ends)
				}
			})
		})
	}
}

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

// TestUnansweredAsksAreForgotten: a client that never answers does not stop the
// clocks of its later calls.
func TestUnansweredAsksAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Conversation{}
		c.noting(func(Event) {})(Event{Method: "sampling/createMessage", ID: json.RawMessage("1")})
		time.Sleep(askTime + time.Second)
		began := time.Now()
		ctx, clock, end := StartClock(t.Context(), time.Minute)
		defer end()
		defer c.Time(clock)()
		if <-ctx.Done(); time.Since(began) != time.Minute {
			t.Errorf("ended after %v", time.Since(began))
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
