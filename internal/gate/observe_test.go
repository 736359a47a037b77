package gate

import (
	"errors"
	"testing"
	"time"

	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

// observer stores the calls that it is notified of.
type observer struct{ all []CallStats }

func (o *observer) StartTrace(time.Time, string, string) CallTrace { return nil }
func (o *observer) CallEnded(one CallStats, _ CallTrace)           { o.all = append(o.all, one) }

// deaf is a log that accepts no record.
type deaf struct{ ActivityLog }

func (deaf) Begin(*activity.Record) error {
	return problem.New(problem.AuditUnavailable, "the disk is full", "").Because(errors.New("full"))
}

// TestObserved checks that a call is reported to observers once, even if it cannot be recorded.
func TestObserved(t *testing.T) {
	w := newWorld(t, nil, readsTool)
	o := &observer{}
	w.gate.Observer = o
	w.call(policy.CallToolRead, "s:reads", `{"n":1}`)
	w.call(policy.CallToolDestructive, "nobody:x", `{}`)
	w.gate.Log = deaf{w.gate.Log}
	w.call(policy.CallToolRead, "s:reads", `{"n":1}`)
	want := []CallStats{
		{Server: "s", Tool: "reads", Operation: "read", Status: activity.Success},
		{Operation: "destructive", Status: activity.Blocked, Code: "SERVER_NOT_FOUND"},
		{Server: "s", Tool: "reads", Operation: "read", Status: activity.Blocked, Code: "AUDIT_UNAVAILABLE"},
	}
	if len(o.all) != len(want) {
		t.Fatalf("%+v", o.all)
	}
	for i, got := range o.all {
		got.Duration, got.Own, got.Record = 0, 0, ""
		if got != want[i] {
			t.Errorf("%d: %+v, want %+v", i, got, want[i])
		}
	}
}
