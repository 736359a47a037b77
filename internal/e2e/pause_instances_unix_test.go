//go:build unix

package e2e

import (
	"fmt"
	"net/http"
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
	calls := func(d *daemon, want string) {
		t.Helper()
		eventually(t, "a call is answered with "+want, func() error {
			if got := d.stateless().call("call_tool_read", `{"name":"s:look"}`).text(); !strings.Contains(got, want) {
				return fmt.Errorf("%s", got)
			}
			return nil
		})
	}
	here, there := start(), start()
	calls(here, "it ran")
	calls(there, "it ran")
	if status, body := here.rest("POST", "/pause", `{"reason":"stop it"}`); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	calls(there, "stop it")
	ran := len(world.all())
	later := start()
	calls(later, "stop it")
	calls(here, "stop it")
	if n := len(world.all()); n != ran {
		t.Errorf("%d calls passed", n-ran)
	}
	if status, body := there.rest("POST", "/resume", ""); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	for _, d := range []*daemon{here, there, later} {
		calls(d, "it ran")
	}
}
