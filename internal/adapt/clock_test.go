//go:build unix

package adapt

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcptest"
	"mcpproxy/internal/session"
)

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
		var asks session.Asks // as the door has them of each session
		call := func() (session.Reply, error) {
			ctx, clock, end := session.StartClock(t.Context(), 500*time.Millisecond)
			defer end()
			defer asks.Time(clock)()
			say, done := asks.Noting(func(e session.Event) {
				if e.ID == nil {
					return
				}
				id, answer := bytes.Clone(e.ID), json.RawMessage(`{"got":"`+e.Method+`"}`)
				go func() {
					time.Sleep(time.Second)
					asks.Answered(id)
					if err := c.Respond(t.Context(), id, session.Reply{Result: answer}); err != nil {
						t.Error(err)
					}
				}()
			})
			defer done()
			return f.Call(ctx, server, Call{Tool: "ask", Passed: &Passed{Session: c, Request: session.Request{ID: json.RawMessage("1"),
				Method: mcp.CallTool, Params: json.RawMessage(`{"name":"ask","arguments":{}}`), Say: say}}})
		}
		if reply, err := call(); err != nil || reply.Error != nil || strings.Contains(string(reply.Result), "isError") {
			t.Errorf("%s: %s %+v %v", server, reply.Result, reply.Error, err)
		}
	}
}
