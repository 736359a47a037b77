package store_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"mcpproxy/internal/store"
	"mcpproxy/internal/store/activity"
)

// testChain verifies the chain with long calls, counts of refusals and pruned records.
func testChain(t *testing.T, open storeOpener) {
	e := startEnv(t, open)
	verify := func(records int64) {
		t.Helper()
		v, err := e.log.Verify(t.Context())
		if err != nil || !v.OK || v.FirstBreak != nil || v.Records != records {
			t.Fatalf("%+v, %v, %v, want %d records", v, v.FirstBreak, err, records)
		}
		if last := e.log.Health().Verified; last == nil || !last.OK || !last.At.Equal(v.At) {
			t.Errorf("last verification = %+v", last)
		}
		var at int64
		_, end, err := e.store.EachChainPart(t.Context(), func(p activity.ChainPart) error {
			if p.First != at+1 || p.Seq < p.First || p.Gone != (p.Payload == nil) {
				t.Fatalf("checkpoint %+v follows sequence number %d", p, at)
			}
			at = p.Seq
			return nil
		})
		if err != nil || end.Seq != at {
			t.Fatalf("the chain ends at %d, %v, want %d", at, err, end.Seq)
		}
	}
	verify(0)
	var long []string
	for i := range 50 {
		long = append(long, e.beginRecord(activity.Record{Type: activity.ToolCall}).ID)
		for range 40 {
			e.endRecord(e.beginRecord(activity.Record{Type: activity.ToolCall}).ID, activity.Success)
			e.appendRecord(activity.Record{Type: activity.PolicyDecision, Status: activity.Blocked})
		}
		for range 3 {
			if err := e.log.AppendRefusal(&activity.Record{ToolName: fmt.Sprint(i), Actor: "agent"}); err != nil {
				t.Fatal(err)
			}
		}
		if i >= 20 {
			e.endRecord(long[i-20], activity.Success)
		}
	}
	verify(50 * 82)
	e.closeAll() // closing writes the counts
	e.openAll()
	e.tidyFully(activity.Retention{MaxRecords: 2000})
	p := e.listPage(activity.Filter{Limit: 1})
	verify(p.Total)
	e.tidyFully(activity.Retention{MaxRecords: 10})
	verify(e.listPage(activity.Filter{Limit: 1}).Total)
	enough := errors.New("enough")
	if _, _, err := e.store.EachChainPart(t.Context(), func(activity.ChainPart) error { return enough }); err != enough {
		t.Errorf("EachChainPart gave %v, want the error of fn", err)
	}
}

// testChainUnderLoad verifies the chain while records are added, ended and pruned.
func testChainUnderLoad(t *testing.T, open storeOpener) {
	e := startEnv(t, open)
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

// gatedStore is a store that can block one call of ProjectEntries until the test continues.
type gatedStore struct {
	store.Database
	next atomic.Pointer[projectionHold]
}

type projectionHold struct{ arrived, release chan struct{} }

func (g *gatedStore) ProjectEntries(ctx context.Context, entries []activity.Entry, pos activity.SpoolPosition) error {
	if h := g.next.Swap(nil); h != nil {
		close(h.arrived)
		<-h.release
	}
	return g.Database.ProjectEntries(ctx, entries, pos)
}

// projectTogether makes the projector store all entries that write appends in one transaction.
func (g *gatedStore) projectTogether(e *testEnv, write func()) {
	h := &projectionHold{make(chan struct{}), make(chan struct{})}
	g.next.Store(h)
	e.appendRecord(activity.Record{Type: activity.System}) // projected in a separate transaction
	<-h.arrived
	defer e.listPage(activity.Filter{Limit: 1})
	defer close(h.release)
	write()
}

// testChainOfPrunedCalls prunes calls before they end. The end of such a call is stored after records that began later,
// if they were projected in the same transaction. Then the test prunes these records one by one.
func testChainOfPrunedCalls(t *testing.T, open storeOpener) {
	g := &gatedStore{}
	e := startEnv(t, func(t *testing.T, dir string) store.Database {
		g.Database = open(t, dir)
		return g
	})
	put := func(n int) {
		for range n {
			e.appendRecord(activity.Record{Type: activity.System})
		}
	}
	keep := func(n int64) {
		t.Helper()
		e.tidyFully(activity.Retention{MaxRecords: n})
		v, err := e.log.Verify(t.Context())
		if err != nil || !v.OK || v.Records != n {
			t.Fatalf("%d records: %+v, %+v, %v", n, v, v.FirstBreak, err)
		}
	}
	running := func() (calls []string) { // the beginnings of these calls are pruned
		for range 4 {
			calls = append(calls, e.beginRecord(activity.Record{Type: activity.ToolCall}).ID)
		}
		put(5)
		keep(3)
		return calls
	}
	calls := running()
	g.projectTogether(e, func() {
		put(2)
		e.endRecord(calls[2], activity.Success)
		e.endRecord(calls[0], activity.Success)
		stays := e.beginRecord(activity.Record{Type: activity.ToolCall}).ID
		put(2)
		e.endRecord(calls[3], activity.Success)
		put(2)
		e.endRecord(stays, activity.Success)
		e.endRecord(calls[1], activity.Success)
	})
	for left := e.listPage(activity.Filter{Limit: 1}).Total; left > 0; left-- {
		keep(left)
	}

	calls = running()
	for range 2 { // in each round, only an end remains
		g.projectTogether(e, func() {
			e.endRecord(calls[0], activity.Success)
			put(3)
		})
		keep(1)
		calls = calls[1:]
	}

	g.projectTogether(e, func() { // the largest number of entries that fits in one transaction
		e.endRecord(calls[0], activity.Success)
		put(activity.MaxBatch - 1)
	})
	for _, left := range []int64{activity.MaxBatch, activity.MaxBatch - 1, 1000, 1} {
		keep(left)
	}
}
