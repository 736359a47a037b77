package ops

import (
	"testing"

	"mcpproxy/internal/store/activity"
)

// A call has an operation type, even if its record contains no intent.
func TestCallsShowTheirOperation(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		intent  *activity.Intent
		variant string
		want    string
	}{
		{nil, "call_tool_read", "read"},
		{&activity.Intent{Reason: "why"}, "call_tool_destructive", "destructive"},
		{&activity.Intent{OperationType: "write"}, "call_tool_read", "write"},
		{nil, "", ""},
		{nil, "call_tool", ""},
	} {
		kept := c.intent
		r := activity.Record{Metadata: activity.Metadata{Intent: c.intent, ToolVariant: c.variant}}
		fillMissingIntentOperation(&r)
		switch got := r.Metadata.Intent; {
		case (got == nil) != (c.want == ""), got != nil && got.OperationType != c.want:
			t.Errorf("%+v: %+v", c, got)
		case kept != nil && (got.Reason != kept.Reason || kept.Reason != "" && kept.OperationType != ""):
			t.Errorf("%+v: %+v, but the stored intent is %+v", c, got, kept)
		}
	}
}
