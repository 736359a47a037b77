//go:build unix

package compat

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/testutil/mcptest"
)

// TestHostileServersInSessions checks that a call of one client ends in an answer or a typed error within the time
// limit, whatever the server does. MCPProxy's own connection and those of other clients are not affected.
func TestHostileServersInSessions(t *testing.T) {
	const over = problem.Code("over")
	const want = "" // an answer
	modes := []struct {
		tool, args   string
		pipe, stream problem.Code
	}{
		{"crash", "{}", over, problem.UpstreamError},
		{"hang", "{}", problem.Timeout, problem.Timeout},
		{"garbage", "{}", want, want},
		{"duplicate", "{}", want, want},
		{"half", "{}", problem.Timeout, problem.Timeout},
		{"drip", `{"ms":100}`, problem.Timeout, problem.Timeout},
		{"wrong_id", "{}", problem.Timeout, problem.UpstreamError},
		{"deep", `{"n":100000}`, problem.UpstreamError, problem.UpstreamError},
		{"storm", `{"n":10000}`, want, want},
		{"huge", `{"bytes":3000000}`, problem.UpstreamError, problem.UpstreamError},
		{"endless", "{}", over, problem.UpstreamError},
	}
	for _, name := range []string{"stdio", "json", "events"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := stdioSpec(t, "s", "zoo")
			if name != "stdio" {
				spec = httpSpec(t, "s", mcptest.New(mcptest.Options{Events: name == "events"}, mcptest.SampleTools()...))
			}
			f := newFixture(t, func(o *Options) { o.MaxMessage = 2 << 20 })
			f.ApplySpecs([]Spec{spec})
			f.untilReady(t, "s", 0)
			neighbour := f.converse(t, "s")
			for _, m := range modes {
				code, limit := m.stream, patience
				if name == "stdio" {
					code = m.pipe
				}
				if code == problem.Timeout {
					limit = 100 * time.Millisecond
				}
				c := f.converse(t, "s")
				start := time.Now()
				err := f.passOne(t, c, limit, m.tool, m.args)
				got := problem.Code("")
				switch {
				case errors.Is(err, session.ErrEnded):
					got = over
				case err != nil:
					got = problem.From(err).Code
				}
				if got != code && !(m.tool == "endless" && got == problem.UpstreamError) {
					t.Errorf("%s: %v, want code %q", m.tool, err, code)
				}
				if took := time.Since(start); took > limit+patience {
					t.Errorf("%s took %v", m.tool, took)
				}
				c.Close()
				if err := f.passOne(t, neighbour, patience, "echo", "{}"); err != nil {
					t.Errorf("after %s, the other client: %v", m.tool, err)
				}
			}
			if s, _ := f.State("s"); s.Phase != Ready || s.Restarts != 0 {
				t.Errorf("MCPProxy's own connection was lost: %+v", s)
			}
		})
	}
}

// passOne makes one call in a session.
func (f *fixture) passOne(t testing.TB, c *Session, limit time.Duration, tool, args string) error {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	_, err := f.Call(ctx, "s", Call{Tool: tool, Passed: &Passed{Session: c, Request: session.Request{
		ID: json.RawMessage("1"), Method: mcp.CallTool, Say: func(session.Event) {},
		Params: json.RawMessage(`{"name":"` + tool + `","arguments":` + args + `,"_meta":{"progressToken":1}}`)}}})
	return err
}
