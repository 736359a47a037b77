package ops

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	"mcpproxy/internal/config"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

// TestRestartRights checks that a user restarts a server at once, and an agent only if that affects no other client.
// Both restarts are recorded before they happen.
func TestRestartRights(t *testing.T) {
	busy := problem.New(problem.Overloaded, "not now", "later")
	for name, c := range map[string]struct {
		caller  Caller
		server  string
		refuses error
		events  []string
		code    problem.Code
	}{
		"a person":              {aPerson, "s", busy, []string{"append", "restart"}, ""},
		"an agent":              {anAgent, "s", nil, []string{"restart quietly", "append"}, ""},
		"refused":               {anAgent, "s", busy, []string{"restart quietly"}, problem.Overloaded},
		"with the key":          {Caller{Actor: aPerson.Actor, Source: activity.SourceMCP}, "s", busy, []string{"restart quietly"}, problem.Overloaded},
		"an agent, no server":   {anAgent, "x", nil, nil, problem.ServerNotFound},
		"an agent, not running": {anAgent, "off", nil, nil, problem.ServerUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, nil, readsTool)
				w.RestartErr = c.refuses
				if err := w.Edit(func(cfg *config.Config) error {
					cfg.Servers = append(cfg.Servers, config.Server{Name: "off", Protocol: "stdio"})
					return nil
				}); err != nil {
					t.Fatal(err)
				}
				w.Events, w.Appended = nil, nil
				_, err := w.gateway.RestartServer(context.Background(), c.caller, ServerRef{Name: c.server})
				if got := problem.From(err); (got == nil) != (c.code == "") || got != nil && got.Code != c.code {
					t.Errorf("error %v", err)
				}
				if !slices.Equal(w.Events, c.events) {
					t.Errorf("events %q", w.Events)
				}
				for _, r := range w.Appended {
					if r.Type != activity.ServerChange || r.Metadata.Action != "restart" || r.ServerName != c.server || r.Status != activity.Success || r.Actor != c.caller.Actor.String() {
						t.Errorf("record %+v", r)
					}
				}
			})
		})
	}
}
