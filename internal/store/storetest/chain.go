package storetest

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"mcpproxy/internal/store/activity"
)

// testChain follows the chain through everything that a store has to keep of it: long
// calls, counts of refusals, what is pruned.
func testChain(t *testing.T, open Opener) {
	e := start(t, open)
	verify := func(records int64) {
		t.Helper()
		v, err := e.log.Verify(t.Context())
		if err != nil || !v.OK || v.FirstBreak != nil || v.Records != records {
			t.Fatalf("%+v, %v, %v, want %d records", v, v.FirstBreak, err, records)
		}
		if last := e.log.Health().Verified; last == nil || !last.OK || !last.At.Equal(v.At) {
			t.Errorf("the last verification is %+v", last)
		}
		var at int64
		_, end, err := e.store.Chain(t.Context(), func(p activity.ChainPart) error {
			if p.First != at+1 || p.Seq < p.First || p.Gone != (p.Payload == nil) {
				t.Fatalf("%+v follows %d", p, at)
			}
			at = p.Seq
			return nil
		})
		if err != nil || end.Seq != at {
			t.Fatalf("the chain ends with %d, %v, want %d", at, err, end.Seq)
		}
	}
	verify(0)
	var long []string
	for i := range 50 {
		long = append(long, e.begin(activity.Record{Type: activity.ToolCall}).ID)
		for range 40 {
			e.end(e.begin(activity.Record{Type: activity.ToolCall}).ID, activity.Success)
			e.put(activity.Record{Type: activity.PolicyDecision, Status: activity.Blocked})
		}
		for range 3 {
			if err := e.log.Refuse(&activity.Record{ToolName: fmt.Sprint(i), Actor: "agent"}); err != nil {
				t.Fatal(err)
			}
		}
		if i >= 20 {
			e.end(long[i-20], activity.Success)
		}
	}
	verify(50 * 82)
	e.down() // which writes the counts
	e.up()
	e.tidy(activity.Retention{MaxRecords: 2000})
	p := e.list(activity.Filter{Limit: 1})
	verify(p.Total)
	e.tidy(activity.Retention{MaxRecords: 10})
	verify(e.list(activity.Filter{Limit: 1}).Total)
	enough := errors.New("enough")
	if _, _, err := e.store.Chain(t.Context(), func(activity.ChainPart) error { return enough }); err != enough {
		t.Errorf("got %v", err)
	}
}

// testChainUnderLoad verifies while records come in, end and go.
func testChainUnderLoad(t *testing.T, open Opener) {
	e := start(t, open)
	for range 4 {
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				for range 300 {
					r := activity.Record{Type: activity.ToolCall}
					if err := e.log.Begin(&r); err != nil {
						t.Error(err)
					}
					if err := e.log.Append(&activity.Record{Type: activity.System}); err != nil {
						t.Error(err)
					}
					if err := e.log.End(r.ID, activity.Outcome{Status: activity.Success}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		for range 2 {
			if v, err := e.log.Verify(t.Context()); err != nil || !v.OK {
				t.Errorf("%+v, %v, %v", v, v.FirstBreak, err)
			}
		}
		wg.Wait()
		if _, err := e.store.Tidy(t.Context(), e.clock.Now(), activity.Retention{MaxRecords: 500}, false); err != nil {
			t.Error(err)
		}
	}
}
