package cli

import (
	"strings"
	"testing"
)

// pause and its alias print the number of cancelled calls, and the next step.
func TestPauseCommand(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"pause", "stop-calls"} {
		w := newEnvWithDaemon(t, &fakeOperations{})
		got := w.runCommand(name, "--reason", "why")
		if got.code != 0 || !strings.Contains(got.stdout, "until you run `mcpproxy resume`. Cancelled: 3 held or running calls.") || !strings.Contains(got.stdout, "Still running: 1 cancelled call.") {
			t.Errorf("%+v", got)
		}
		if got = w.runCommand("resume"); got.stdout != "Calls are allowed again.\n" {
			t.Errorf("%+v", got)
		}
	}
}
