package e2e

import (
	"encoding/json"
	"strings"
	"testing"
)

// asks reports whether the server sends a request to its client in a scenario of the official suite.
func asks(scenario string) bool {
	return strings.Contains(scenario, "elicitation") || strings.Contains(scenario, "sampling") || strings.HasPrefix(scenario, "input-required-result-")
}

// TestConformanceOnASharedSession: with session shared, the official suite passes in both protocols, except for
// scenarios in which the server sends requests to the client.
func TestConformanceOnASharedSession(t *testing.T) {
	t.Parallel()
	suite(t)
	fixture := buildSDK(t, everythingServer)
	config, err := json.Marshal(map[string]any{"mcpServers": map[string]any{
		"http":  map[string]any{"url": serveFixture(t, fixture, false), "session": "shared"}, // supports only the legacy protocol
		"stdio": map[string]any{"command": fixture, "session": "shared"},                     // supports both protocols
	}})
	if err != nil {
		t.Fatal(err)
	}
	d := startDaemon(t, string(config))
	d.awaitTools("http:test_simple_text", "stdio:test_simple_text")
	for _, server := range []string{"http", "stdio"} {
		for _, revision := range []string{legacyRevision, modernRevision} {
			v := conform(t, "http://"+d.address+"/mcp/servers/"+server, revision)
			failing := v.failing(v.scored)
			t.Logf("%s, %s: %d of %d pass; these fail: %q", server, revision, len(v.scored)-len(failing), len(v.scored), failing)
			for _, scenario := range failing {
				if !asks(scenario) {
					t.Errorf("%s, %s: %s\n%s", server, revision, scenario, v.output)
				}
			}
		}
	}
}
