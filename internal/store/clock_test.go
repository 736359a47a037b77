package store

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/testutil/volume"
)

// TestRecordsUnderAClockThatIsSet writes records while the clock is set back and forward by up to a year, also between
// restarts. It checks that IDs only increase, that no record is lost, repeated or changed, that the chain verifies, and
// that little is pruned by age.
func TestRecordsUnderAClockThatIsSet(t *testing.T) {
	volume.SkipUnderRace(t)
	t.Parallel()
	const year, each = 365 * 24 * time.Hour, 250
	rounds := volume.FullOrQuick(12, 4)
	dir, random := t.TempDir(), rand.New(rand.NewPCG(volume.Seed(t, 47), 0))
	var set atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(set.Load())).Round(0) }
	ctx := t.Context()
	var ids []string
	keep := activity.Retention{Days: 90}
	for round := range rounds {
		db := OpenSQLite(filepath.Join(dir, "mcpproxy.db"), nil)
		l, err := activity.Open(activity.Options{Dir: filepath.Join(dir, "spool"), Now: now, Retention: func() activity.Retention { return keep }}, db)
		if err != nil {
			t.Fatal(err)
		}
		for i := range each {
			if i%25 == 0 {
				set.Store(random.Int64N(int64(2*year)) - int64(year))
			}
			r := activity.Record{Type: activity.ToolCall, ToolName: fmt.Sprint(len(ids))}
			if err := l.Begin(&r); err != nil {
				t.Fatal(err)
			}
			if i%7 == 0 {
				set.Store(-set.Load())
			}
			if err := l.End(r.ID, activity.Outcome{Status: activity.Success, ErrorMessage: "outcome " + r.ToolName}); err != nil {
				t.Fatal(err)
			}
			ids = append(ids, r.ID)
		}
		if round == rounds-1 {
			checkRecords(t, l, ids)
			CheckSpool(t, filepath.Join(dir, "spool"))
			checkPruning(t, db, l, keep, now().Add(3*year))
		}
		if err := l.Close(ctx); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func checkRecords(t *testing.T, l *activity.Log, ids []string) {
	t.Helper()
	if !slices.IsSorted(ids) || len(slices.Compact(slices.Clone(ids))) != len(ids) {
		t.Error("the IDs do not increase")
	}
	var got []activity.Record
	for f := (activity.Filter{Limit: 1000}); ; {
		page, err := l.List(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, page.Records...)
		if f.Cursor = page.NextCursor; f.Cursor == "" {
			break
		}
	}
	slices.Reverse(got)
	if len(got) != len(ids) {
		t.Fatalf("got %d records of %d calls", len(got), len(ids))
	}
	for i, r := range got {
		if r.ID != ids[i] || r.ToolName != fmt.Sprint(i) || r.Status != activity.Success || r.ErrorMessage != "outcome "+r.ToolName || r.DurationMS < 0 {
			t.Fatalf("record %d: %+v", i, r)
		}
	}
}

// checkPruning runs Tidy at a time at which all records are old.
func checkPruning(t *testing.T, db *SQLite, l *activity.Log, keep activity.Retention, now time.Time) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	before, err := l.List(ctx, activity.Filter{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	for more := true; more; {
		if more, err = db.Tidy(ctx, now, keep, false); err != nil {
			t.Fatal(err)
		}
	}
	after, err := l.List(ctx, activity.Filter{Limit: 1})
	if err != nil || after.Total < before.Total-before.Total/8-pruneStep {
		t.Errorf("one Tidy left %d of %d records, %v", after.Total, before.Total, err)
	}
}
