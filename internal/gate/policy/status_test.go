package policy_test

import (
	"slices"
	"strings"
	"testing"

	"mcpproxy/internal/gate/policy"
)

// TestStatusOf compares all 64 combinations with the table of the contract.
func TestStatusOf(t *testing.T) {
	seen := map[policy.ToolStatus]bool{}
	for bits := range 1 << 6 {
		f := policy.StatusFacts{
			Known: bits&1 != 0, ServerEnabled: bits&2 != 0, Quarantined: bits&4 != 0,
			DeniedByConfig: bits&8 != 0, SwitchedOff: bits&16 != 0, Approved: bits&32 != 0,
		}
		want := policy.Callable
		for _, row := range []struct {
			applies bool
			status  policy.ToolStatus
		}{ // the last entry that applies decides: the table in reverse order
			{!f.Approved, policy.PendingApproval},
			{f.SwitchedOff, policy.DisabledByUser},
			{f.DeniedByConfig, policy.DisabledByConfig},
			{f.Quarantined, policy.ServerQuarantined},
			{!f.ServerEnabled, policy.ServerDisabled},
			{!f.Known, policy.DisabledUnknown},
		} {
			if row.applies {
				want = row.status
			}
		}
		got := policy.StatusOf(f)
		seen[got] = true
		if got != want {
			t.Errorf("StatusOf(%+v) = %q, want %q", f, got, want)
		}
	}
	if len(seen) != len(policy.Statuses())+1 {
		t.Errorf("%d statuses are reachable, want all %d and Callable", len(seen), len(policy.Statuses()))
	}
	if policy.StatusOf(policy.StatusFacts{}) != policy.DisabledUnknown {
		t.Error("empty facts do not result in disabled_unknown")
	}
}

// TestStatusesAreComplete checks that each status has its own name and remedy, and that only Callable has none.
func TestStatusesAreComplete(t *testing.T) {
	want := map[string]string{ // the expected remedies
		"server_disabled":    "enable the server first",
		"server_quarantined": "a person must review and approve the server, in the UI or with `mcpproxy upstream approve`",
		"disabled_by_config": "the user cannot override it in the UI",
		"disabled_by_user":   "ask the user to switch it on again in the UI or with `mcpproxy tools enable`",
		"pending_approval":   "ask the user to review and approve it in the UI or with `mcpproxy approvals`",
		"disabled_unknown":   "The reason is undetermined",
	}
	var names []string
	for i := range 256 {
		s := policy.ToolStatus(i)
		if s == policy.Callable {
			if s.String() != "" || s.Remedy() != "" {
				t.Errorf("a callable tool has the status %q, remedy %q", s, s.Remedy())
			}
			continue
		}
		if !slices.Contains(policy.Statuses(), s) && s.String() != "disabled_unknown" {
			t.Errorf("status %d has the name %q but is not in Statuses", i, s)
		}
		if !strings.Contains(s.Remedy(), want[s.String()]) || want[s.String()] == "" {
			t.Errorf("the remedy of %s is %q", s, s.Remedy())
		}
	}
	for _, s := range policy.Statuses() {
		names = append(names, s.String())
		if s.PrimitiveRemedy() == "" || s.CommandRemedy("s", "s:t") == "" || strings.Contains(s.CommandRemedy("s", "s:t"), "$") {
			t.Errorf("%s: %q, %q", s, s.PrimitiveRemedy(), s.CommandRemedy("s", "s:t"))
		}
	}
	if slices.Sort(names); len(slices.Compact(names)) != len(want) {
		t.Errorf("statuses %v", names)
	}
}

// TestConfigLockBelongsToTheOperator checks that a lock of the operator is never described as a setting that the user
// can toggle.
func TestConfigLockBelongsToTheOperator(t *testing.T) {
	r := policy.DisabledByConfig.Remedy()
	for _, want := range []string{"Operator policy", "mcp_config.json", "cannot override"} {
		if !strings.Contains(r, want) {
			t.Errorf("%q is missing in %q", want, r)
		}
	}
	for _, never := range []string{"switch it on", "ask the user to", "enable it"} {
		if strings.Contains(strings.ToLower(r), never) {
			t.Errorf("%q must not be in %q", never, r)
		}
	}
}

// TestReasons checks that the list contains all reasons, and that the first one is the status.
func TestReasons(t *testing.T) {
	for bits := range 1 << 6 {
		f := policy.StatusFacts{
			Known: bits&1 != 0, ServerEnabled: bits&2 != 0, Quarantined: bits&4 != 0,
			DeniedByConfig: bits&8 != 0, SwitchedOff: bits&16 != 0, Approved: bits&32 != 0,
		}
		all := policy.AllStatusesOf(f)
		if first := append(all, policy.Callable)[0]; first != policy.StatusOf(f) {
			t.Errorf("%+v: %v, want %v first", f, all, policy.StatusOf(f))
		}
		want := 1
		if f.Known {
			want = 0
			for _, reason := range []bool{!f.ServerEnabled, f.Quarantined, f.DeniedByConfig, f.SwitchedOff, !f.Approved} {
				if reason {
					want++
				}
			}
		}
		if len(all) != want {
			t.Errorf("%+v: %v", f, all)
		}
	}
}
