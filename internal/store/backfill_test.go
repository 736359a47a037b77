package store_test

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"mcpproxy/internal/store"
	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/testutil/volume"
)

// TestClientsOfAnOlderDatabase checks that opening a database of a version without the client column adds the column.
func TestClientsOfAnOlderDatabase(t *testing.T) {
	volume.SkipUnderRace(t)
	t.Parallel()
	const n = 5000
	dir := newClosedDatabase(t, n)
	raw := openSQL(t, filepath.Join(dir, "mcpproxy.db"))
	gone, err := raw.Exec("DELETE FROM activity_column WHERE id >= 10 << 40")
	if err != nil {
		t.Fatal(err)
	}
	if chunks, err := gone.RowsAffected(); err != nil || chunks < 2 {
		t.Fatalf("got %d chunks with clients, %v, want none", chunks, err)
	}
	if err := raw.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second query uses the new columns
		l, db := openLogAndDB(t, dir)
		page, err := l.List(t.Context(), activity.Filter{Clients: []string{"client 3"}})
		if err != nil || page.Total != n/5 || page.Incomplete {
			t.Errorf("got %d records, incomplete = %v, %v", page.Total, page.Incomplete, err)
		}
		if page, err := l.List(t.Context(), activity.Filter{Since: page.Records[0].Timestamp}); err != nil || page.Total == 0 || page.Total > 10 {
			t.Errorf("got %d records since the newest, %v", page.Total, err)
		}
		closeLogAndDB(t, l, db)
	}
}

// TestTimesOfAnOlderDatabase checks the columns of durations, also for calls that end when their record is in a chunk,
// and in a database of an older version.
func TestTimesOfAnOlderDatabase(t *testing.T) {
	volume.SkipUnderRace(t)
	t.Parallel()
	dir := t.TempDir()
	l, db := openLogAndDB(t, dir)
	for i := range 3 {
		long := activity.Record{Type: activity.ToolCall}
		if err := l.Begin(&long); err != nil {
			t.Fatal(err)
		}
		addCalls(t, l, 3000)
		if i == 2 { // as an older version stored it
			closeLogAndDB(t, l, db)
			raw := openSQL(t, filepath.Join(dir, "mcpproxy.db"))
			if _, err := raw.Exec("DELETE FROM activity_column WHERE id >= 11 << 40"); err != nil {
				t.Fatal(err)
			}
			if err := raw.Close(); err != nil {
				t.Fatal(err)
			}
			l, db = openLogAndDB(t, dir) // opening the log ends the call
			checkTimes(t, l, db)
			break
		}
		if _, err := l.List(t.Context(), activity.Filter{Limit: 1}); err != nil {
			t.Fatal(err)
		}
		if err := l.End(long.ID, activity.Outcome{Status: activity.Success, Duration: time.Hour, Own: time.Duration(i+1) * time.Millisecond}); err != nil {
			t.Fatal(err)
		}
		checkTimes(t, l, db)
	}
	closeLogAndDB(t, l, db)
	l, db = openLogAndDB(t, dir)
	checkTimes(t, l, db)
	closeLogAndDB(t, l, db)
}

// checkTimes compares the columns of durations with the records.
func checkTimes(t *testing.T, l *activity.Log, db *store.SQLite) {
	t.Helper()
	var durations, own []uint64
	for f := (activity.Filter{Limit: 1000}); ; {
		page, err := l.List(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page.Records {
			durations, own = append(durations, uint64(r.DurationMS)), append(own, uint64(r.OwnUS))
		}
		if f.Cursor = page.NextCursor; f.Cursor == "" {
			break
		}
	}
	slices.Reverse(durations)
	slices.Reverse(own)
	gotDurations, gotOwn, err := db.DurationColumns(t.Context())
	if err != nil || !slices.Equal(gotDurations, durations) || !slices.Equal(gotOwn, own) || !slices.Contains(own, 1000) || !slices.Contains(durations, 3600_000) {
		t.Fatalf("%d and %d times of %d records, %v", len(gotDurations), len(gotOwn), len(own), err)
	}
}
