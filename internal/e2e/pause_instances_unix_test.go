//go:build unix

package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"mcpproxy/internal/testutil/mcptest"
	"mcpproxy/internal/testutil/pgtest"
)

// TestPauseAcrossInstances: a pause at one instance stops calls at the others, also at one that starts later. A resume
// at another instance ends it everywhere.
func TestPauseAcrossInstances(t *testing.T) {
	t.Parallel()
	world := &counted{}
	world.add("look", `{"readOnlyHint":true}`, `{"type":"object"}`)
	u := mcptest.Serve(t, mcptest.New(mcptest.Options{}, world.tool...))
	config := fmt.Sprintf(`{"database":%q,"mcpServers":{"s":{"url":%q,"trust":"auto"}}}`, pgtest.StartServer(t).CreateDatabase(t), u.URL)
	start := func() *daemon {
		d := startDaemon(t, config)
		awaitReady(d)
		d.awaitTools("s:look")
		return d
	}
	calls := func(d *daemon, phase, want string) {
		t.Helper()
		eventually(t, "a call is answered with "+want, func() error {
			if got := d.stateless().call("call_tool_read", fmt.Sprintf(`{"name":"s:look","args":{"phase":%q}}`, phase)).text(); !strings.Contains(got, want) {
				return fmt.Errorf("%s", got)
			}
			return nil
		})
	}
	here, there := start(), start()
	calls(here, "before", "it ran")
	calls(there, "before", "it ran")
	if status, body := here.rest("POST", "/pause", `{"reason":"stop it"}`); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	calls(there, "arriving", "the call was not made") // earlier calls may pass
	later := start()
	for _, d := range []*daemon{here, there, later} {
		calls(d, "paused", "stop it")
	}
	if ran := world.all(); slices.ContainsFunc(ran, func(call string) bool { return strings.Contains(call, "paused") }) {
		t.Errorf("calls passed: %s", ran)
	}
	if status, body := there.rest("POST", "/resume", ""); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	for _, d := range []*daemon{here, there, later} {
		calls(d, "after", "it ran")
	}
}
