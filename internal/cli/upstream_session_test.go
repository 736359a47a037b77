package cli

import (
	"testing"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/upstream"
)

// TestSessionText checks that `upstream get` says which clients share the session with a server, and why.
func TestSessionText(t *testing.T) {
	needs := func(all ...upstream.SessionNeed) (known []upstream.KnownNeed) {
		for _, n := range all {
			known = append(known, upstream.KnownNeed{Need: n})
		}
		return known
	}
	for want, s := range map[string]ops.ServerView{
		"":                      {Session: "auto", ProtocolVersion: mcp.Modern},
		"one for each client":   {Session: "per_client"},
		"shared by its clients": {Session: "shared"},
		`shared by its clients; if it keeps state for each client, set "session": "per_client"`:                         {Session: "auto"},
		"shared by its clients, except those with elicitation or roots, because it has asked for that":                  {Session: "auto", SessionNeeds: needs(upstream.NeedElicitation, upstream.NeedRoots)},
		"shared by its clients, except those with sampling, elicitation or roots, because it lists other tools to them": {Session: "auto", SessionNeeds: needs(upstream.NeedCapabilities)},
		"one for each client: it keeps state for each session":                                                          {Session: "auto", SessionNeeds: needs(upstream.NeedRoots, upstream.NeedState)},
	} {
		if got := sessionText(s); got != want {
			t.Errorf("%+v: %q, want %q", s, got, want)
		}
	}
}
