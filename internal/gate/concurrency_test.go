package gate

import (
	"testing"

	"mcpproxy/internal/config"
)

// TestReloadKeepsTheSlots checks that a reload does not reset a limit that it does not change.
func TestReloadKeepsTheSlots(t *testing.T) {
	cfg := config.DefaultConfig()
	cfg.MaxConcurrent = 8
	cfg.Servers = []config.Server{{Name: "a"}, {Name: "b", MaxConcurrent: 3}}
	before := newConcurrencyLimiter(cfg, nil)
	if before.perServer["a"].n != 2 || before.perServer["b"].n != 3 {
		t.Errorf("%d and %d slots, want a quarter of the total and the server's own limit", before.perServer["a"].n, before.perServer["b"].n)
	}
	changed := *cfg
	changed.Servers = []config.Server{{Name: "a"}, {Name: "b", MaxConcurrent: 4}}
	after := newConcurrencyLimiter(&changed, before)
	if after.global != before.global || after.perServer["a"] != before.perServer["a"] || after.perServer["b"] == before.perServer["b"] {
		t.Error("a limit that did not change has new slots, or the changed one does not")
	}
}
