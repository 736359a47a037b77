package cli

import (
	"strings"
	"testing"
)

// When approvals were lost, the command asks for one approval per server instead of one per tool.
func TestLostApprovals(t *testing.T) {
	t.Parallel()
	w := newEnvWithDaemon(t, &fakeOperations{forgotten: true})
	got := w.runCommand("approvals")
	if got.code != 0 || strings.Contains(got.stdout, "tools approve") || strings.Count(got.stdout, "github") != 2 ||
		!strings.Contains(got.stdout, "mcpproxy upstream approve github\n") || !strings.Contains(got.stderr, "The approvals were lost.") {
		t.Errorf("%+v", got)
	}
	if got = w.runCommand("status"); !strings.Contains(got.stdout, "3 servers: mcpproxy approvals") {
		t.Errorf("%+v", got)
	}
}
