package app

import (
	"fmt"
	"strings"
	"testing"

	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/upstream"
)

// A list with many tools gives one record per outcome, with their number and some of their names.
func TestOneRecordForManyTools(t *testing.T) {
	var all []approval.Evaluation
	for i := range 10_000 {
		all = append(all, approval.Evaluation{Tool: fmt.Sprint("tool", i), Why: approval.Changed, Loosened: []string{"destructiveHint"}})
	}
	r := newEvaluationRecord("s", all, activity.Blocked, "hold_tools", "system")
	if r.Type != activity.Approval || r.ServerName != "s" || r.ToolName != "" || len(r.Metadata.Detail) > 2_000 {
		t.Errorf("%+v", r)
	}
	for _, want := range []string{"10000: ", "tool0 (changed, loosens destructiveHint)", "and 9980 more"} {
		if !strings.Contains(r.Metadata.Detail, want) {
			t.Errorf("%q is not in %q", want, r.Metadata.Detail)
		}
	}
	if r := newEvaluationRecord("s", all[:1], activity.Blocked, "hold_tools", "system"); r.ToolName != "tool0" {
		t.Errorf("one tool: %+v", r)
	}
}

// A server that fails is recorded again when the reason becomes a missing login, and not for other reasons.
func TestPhasesThatAreRecorded(t *testing.T) {
	var r serverEventRecorder
	for i, c := range []struct {
		phase upstream.Phase
		code  string
		want  bool
	}{
		{upstream.Connecting, "", false}, {upstream.Failed, "UNREACHABLE", true}, {upstream.Failed, "TIMEOUT", false}, {upstream.Failed, upstream.LoginNeeded, true},
		{upstream.Connecting, "", false}, {upstream.Failed, upstream.LoginNeeded, false}, {upstream.Ready, "", true}, {upstream.Failed, upstream.LoginNeeded, true},
	} {
		state := upstream.State{Name: "s", Phase: c.phase}
		state.Failure.Code = c.code
		if got := r.phaseChanged(state); got != c.want {
			t.Errorf("state %d: %v", i, got)
		}
	}
}
