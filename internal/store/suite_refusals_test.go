package store_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/testutil/volume"
)

// testRefusals writes many more refusals than calls. It checks that refusals are pruned by their own quota, even if
// calls were recorded between them, and that they displace no calls.
func testRefusals(t *testing.T, open storeOpener) {
	e := startEnv(t, open)
	var calls, refusals []activity.Record
	add := func(n, refused int) {
		for i := range n {
			calls = append(calls, e.appendRecord(activity.Record{Type: activity.System, Status: activity.Success,
				ServerName: servers[i%3], ErrorMessage: searches[i%4]}))
			for range refused {
				refusals = append(refusals, e.appendRecord(activity.Record{Type: activity.PolicyDecision, Status: activity.Blocked,
					ServerName: servers[i%3], ErrorMessage: searches[i%4]}))
			}
		}
	}
	look := func(what string) {
		t.Helper()
		p := e.listPage(activity.Filter{Types: []activity.Type{activity.PolicyDecision}, Limit: 1})
		refusals = refusals[int64(len(refusals))-p.Total:]
		all := slices.Concat(calls, refusals)
		slices.SortFunc(all, func(a, b activity.Record) int { return strings.Compare(a.ID, b.ID) })
		for _, f := range []activity.Filter{{}, {Types: []activity.Type{activity.System}, Limit: 1000}, {Servers: []string{"github"}}, {Search: "banana", Limit: 1000}} {
			checkList(e, f, all)
		}
		for _, r := range []activity.Record{all[0], all[len(all)/2], all[len(all)-1]} {
			if got, err := e.log.Get(t.Context(), r.ID); err != nil || got.ID != r.ID {
				t.Errorf("%s: Get gave %s, %v, want %s", what, got.ID, err, r.ID)
			}
		}
	}
	keep := activity.Retention{MaxRecords: 600, MaxBytes: 1 << 30, Days: 90}
	add(100, volume.FullOrQuick(60, 45))
	e.listPage(activity.Filter{Search: "banana"}) // moves the records to the text index
	e.tidyFully(keep)
	look("a first flood")
	if len(refusals) < 1000 || len(refusals) > 3100 {
		t.Errorf("%d refusals remain", len(refusals))
	}
	e.closeAll()
	e.openAll()
	look("after a restart")
	e.listPage(activity.Filter{Search: "banana"})
	add(400, volume.FullOrQuick(20, 6))
	e.tidyFully(keep)
	look("a second flood")
	if len(calls) != 500 {
		t.Fatalf("%d calls remain, want 500", len(calls))
	}
	add(2000, 0) // more records than the unsealed chunks contain
	e.tidyFully(keep)
	calls = calls[len(calls)-600:]
	look("calls go for calls")
	if p := e.listPage(activity.Filter{Types: []activity.Type{activity.System}, Limit: 1}); p.Total != 600 {
		t.Errorf("%d of 600 calls remain", p.Total)
	}
	e.closeAll()
	e.openAll()
	look("at the end")
}

// testSizeOfRefusals checks that large refusals are pruned and displace no call.
func testSizeOfRefusals(t *testing.T, open storeOpener) {
	e := startEnv(t, open)
	const limit = 8 << 20
	call := e.appendRecord(activity.Record{Type: activity.ToolCall, Status: activity.Success})
	body := []byte(`"` + strings.Repeat("some text ", 1000) + `"`)
	for range volume.FullOrQuick(6000, 4000) {
		e.appendRecord(activity.Record{Type: activity.PolicyDecision, Status: activity.Blocked, Arguments: body})
	}
	e.tidyFully(activity.Retention{MaxBytes: limit})
	if got, err := e.log.Get(t.Context(), call.ID); err != nil || got.ID != call.ID {
		t.Errorf("the call was pruned: %v", err)
	}
	if p := e.listPage(activity.Filter{Limit: 1}); p.Total > 3*1024+1 {
		t.Errorf("%d records remain", p.Total)
	}
}

// testRefusalCounts checks the counts of repeated refusals after restarts and pruning.
func testRefusalCounts(t *testing.T, open storeOpener) {
	e := startEnv(t, open)
	refuse := func(tool string, times int) (r activity.Record) {
		for range times {
			r = activity.Record{Actor: "agent", ToolName: tool, ErrorMessage: "no", Arguments: []byte(`{"word":"apple"}`)}
			if err := e.log.AppendRefusal(&r); err != nil {
				t.Fatal(err)
			}
		}
		return r
	}
	want := func(id string, times int64) {
		t.Helper()
		r, err := e.log.Get(t.Context(), id)
		if err != nil || r.Repeated != times || r.Status != activity.Blocked || r.Type != activity.PolicyDecision {
			t.Errorf("got %+v, %v, want %d repetitions", r, err, times)
		}
	}
	first := refuse("a", 7)
	want(first.ID, 7)
	e.closeAll()
	e.openAll()
	want(first.ID, 7)
	for _, f := range []activity.Filter{{Statuses: []activity.Status{activity.Blocked}}, {Tools: []string{"a"}}, {Search: "apple"}} {
		if p := e.listPage(f); p.Total != 1 || p.Records[0].Repeated != 7 {
			t.Errorf("%s: %+v", filterString(f), p)
		}
	}
	var later []activity.Record
	for i := range severalChunks() {
		later = append(later, refuse(fmt.Sprint(i%400), 1))
	}
	e.appendRecord(activity.Record{Type: activity.System})
	e.tidyFully(activity.Retention{MaxRecords: 2}) // keeps the record above and the record about the flood of refusals
	e.closeAll()
	e.openAll()
	want(later[399].ID, int64(severalChunks()/400))
}
