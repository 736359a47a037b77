package door

import (
	"encoding/json"
	"testing"

	"mcpproxy/internal/activity"
	"mcpproxy/internal/policy"
)

// discardLog writes no record.
type discardLog struct{}

func (discardLog) Begin(r *activity.Record) error     { r.ID = "record"; return nil }
func (discardLog) End(string, activity.Outcome) error { return nil }
func (discardLog) Refuse(*activity.Record) error      { return nil }

// BenchmarkCall is what the door does for a call, without the writing of its
// record.
func BenchmarkCall(b *testing.B) {
	w := newWorld(b, nil, readsTool)
	w.door.Log = discardLog{}
	b.ReportAllocs()
	for b.Loop() {
		w.Events = w.Events[:0]
		_, err := w.door.Call(b.Context(), CallRequest{Variant: policy.CallToolRead, Name: "s:reads", Args: json.RawMessage(`{"n":1}`), Caller: anAgent})
		if err != nil {
			b.Fatal(err)
		}
	}
}
