package gate

import (
	"testing"

	"mcpproxy/internal/config"
)

// A reload does not reset a limit that it does not change.
func TestReloadKeepsTheSlots(t *testing.T) {
	cfg := config.DefaultConfig()
	cfg.MaxConcurrent = 8
	cfg.Servers = []config.Server{{Name: "a"}, {Name: "b", MaxConcurrent: 3}}
	before := newConcurrencyLimiter(cfg, nil)
	if before.perServer["a"].n != 2 || before.perServer["b"].n != 3 {
		t.Errorf("places %d and %d, want a quarter of all and its own", before.perServer["a"].n, before.perServer["b"].n)
	}
	changed := *cfg
	changed.Servers = []config.Server{{Name: "a"}, {Name: "b", MaxConcurrent: 4}}
	after := newConcurrencyLimiter(&changed, before)
	if after.global != before.global || after.perServer["a"] != before.perServer["a"] || after.perServer["b"] == before.perServer["b"] {
		t.Error("only the changed limit is made anew")
	}
}
