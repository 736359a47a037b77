package ops

import (
	"encoding/json"
	"testing"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/policy"
)

// Every tool is counted under its own status, even after a JSON round trip.
func TestCounts(t *testing.T) {
	t.Parallel()
	d := new(tool.Definition)
	for s := range policy.ToolStatus(policy.StatusCount) {
		c := countByStatus([]*catalog.Tool{{Definition: d, Status: s}, {Definition: d, Status: policy.DisabledByUser}})
		want := Counts{policy.DisabledByUser: 1}
		want[s]++
		if *c != want {
			t.Errorf("%s: %v", s.Word(), c)
		}
		raw, err := json.Marshal(c)
		var got Counts
		if err != nil || json.Unmarshal(raw, &got) != nil || got != want {
			t.Errorf("%s: %s, %v, %v", s.Word(), raw, got, err)
		}
	}
	raw, _ := json.Marshal(Counts{policy.PendingApproval: 1, policy.ServerDisabled: 2})
	if string(raw) != `{"callable":0,"server_disabled":2,"pending_approval":1}` {
		t.Errorf("%s", raw)
	}
	blocked := countByStatus([]*catalog.Tool{{Definition: d, Status: policy.PendingApproval, Blocked: true}, {Definition: d, Status: policy.DisabledByUser, Blocked: true}})
	if raw, _ := json.Marshal(blocked); string(raw) != `{"callable":0,"disabled_by_user":1,"blocked":1}` {
		t.Errorf("%s", raw)
	}
	if countByStatus([]*catalog.Tool{{Definition: d, Status: policy.Callable}}) != nil {
		t.Error("the counts are not nil, although all tools can be called")
	}
}
