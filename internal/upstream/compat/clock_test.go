//go:build unix

package compat

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/testutil/mcptest"
)

// TestTimeoutPausesForUsers: the time limit pauses while the user answers, over stdio, HTTP and the bridge to a modern
// server.
func TestTimeoutPausesForUsers(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.ApplySpecs([]Spec{stdioSpec(t, "pipe", "asker"), httpSpec(t, "http", asker()),
		{Name: "modern", Transport: HTTP, URL: mcptest.Serve(t, &modernServer{}).URL}})
	for _, server := range []string{"pipe", "http", "modern"} {
		f.untilReady(t, server, 0)
		c := f.converse(t, server)
		// The user takes twice as long as the server may. If a busy machine delays the server, the test is repeated
		// with longer times.
		for limit := 500 * time.Millisecond; ; limit *= 4 {
			reply, err := callWithAnswerAfter(t, f, c, server, limit, 2*limit)
			if err == nil && reply.Error == nil && !strings.Contains(string(reply.Result), "isError") {
				break
			}
			if limit > 5*time.Second {
				t.Errorf("%s: %s %+v %v", server, reply.Result, reply.Error, err)
				break
			}
		}
	}
}

// callWithAnswerAfter makes a call whose server may take limit, and whose user answers after a time.
func callWithAnswerAfter(t *testing.T, f *fixture, c *Session, server string, limit, after time.Duration) (session.Reply, error) {
	var asks session.ServerQuestionTracker // as the gate has them of each session
	ctx, clock, end := session.StartPausableDeadline(t.Context(), limit)
	defer end()
	defer asks.PauseWhileAsked(clock)()
	var answering sync.WaitGroup
	failed := make(chan error, 100) // of each answer, as many as may be asked
	say, done := asks.WrapToTrackQuestions(func(e session.Event) {
		if e.ID == nil {
			return
		}
		id, answer := bytes.Clone(e.ID), json.RawMessage(`{"got":"`+e.Method+`"}`)
		answering.Go(func() {
			time.Sleep(after)
			asks.MarkAnswered(id)
			failed <- c.AnswerServerQuestion(t.Context(), id, session.Reply{Result: answer})
		})
	})
	defer done()
	reply, err := f.Call(ctx, server, Call{Tool: "ask", Passed: &Passed{Session: c, Request: session.Request{ID: json.RawMessage("1"),
		Method: mcp.CallTool, Params: json.RawMessage(`{"name":"ask","arguments":{}}`), Say: say}}})
	answering.Wait()
	close(failed)
	for f := range failed {
		err = errors.Join(err, f)
	}
	return reply, err
}
