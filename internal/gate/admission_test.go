package gate

import (
	"testing"

	"mcpproxy/internal/config"
)

// A reload lifts no limit that it does not change.
func TestAReloadKeepsThePlaces(t *testing.T) {
	cfg := config.DefaultConfig()
	cfg.MaxConcurrent = 8
	cfg.Servers = []config.Server{{Name: "a"}, {Name: "b", MaxConcurrent: 3}}
	before := newAdmission(cfg, nil)
	if before.servers["a"].n != 2 || before.servers["b"].n != 3 {
		t.Errorf("places %d and %d, want a quarter of all and its own", before.servers["a"].n, before.servers["b"].n)
	}
	changed := *cfg
	changed.Servers = []config.Server{{Name: "a"}, {Name: "b", MaxConcurrent: 4}}
	after := newAdmission(&changed, before)
	if after.all != before.all || after.servers["a"] != before.servers["a"] || after.servers["b"] == before.servers["b"] {
		t.Error("only the changed limit is made anew")
	}
}
