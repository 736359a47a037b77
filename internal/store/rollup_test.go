package store

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/testutil/activitytest"
	"mcpproxy/internal/testutil/volume"
)

func (e *sqliteEngine) countRows(t *testing.T, query string) (n int64) {
	t.Helper()
	if err := e.reads.QueryRow(query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func tidyAll(t *testing.T, db *SQLite, now time.Time, keep activity.Retention) {
	t.Helper()
	for more := true; more; {
		var err error
		if more, err = db.Tidy(t.Context(), now, keep, true); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRollUpIsPrunedWithItsRecords writes records with many names, hour after hour, and checks the hourly counts after
// pruning.
func TestRollUpIsPrunedWithItsRecords(t *testing.T) {
	volume.SkipUnderRace(t)
	t.Parallel()
	dir := t.TempDir()
	db := OpenSQLite(filepath.Join(dir, "mcpproxy.db"), nil)
	clock := activitytest.NewClock(time.Date(2026, 1, 1, 0, 30, 0, 0, time.UTC))
	l, err := activity.Open(activity.Options{Dir: filepath.Join(dir, "spool"), Now: clock.Now}, db)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := l.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	const hours, each = 30, 100
	for h := range hours {
		for i := range each {
			r := activity.Record{Type: activity.System, Status: activity.Success, ToolName: fmt.Sprint(h, " ", i)}
			if err := l.Append(&r); err != nil {
				t.Fatal(err)
			}
		}
		clock.Advance(time.Hour)
	}
	if _, err := l.List(t.Context(), activity.Filter{}); err != nil {
		t.Fatal(err)
	}
	e, err := db.waitOpen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, keep := range []int64{2500, 1000, each, 1} {
		tidyAll(t, db, clock.Now(), activity.Retention{MaxRecords: keep})
		want := (keep + each - 1) / each * each // whole hours; in a chunk, the hour of its first record
		if n := e.countRows(t, "SELECT coalesce(sum(records), 0) FROM activity_hour"); keep < 2000 && n != want {
			t.Errorf("the hourly counts for %d records have %d records, want %d", keep, n, want)
		}
	}
	tidyAll(t, db, clock.Now(), activity.Retention{MaxBytes: 1})
	if n := e.countRows(t, "SELECT count(*) FROM activity_hour"); n != 0 {
		t.Errorf("%d rows remain after all records were pruned", n)
	}
}

// TestRollUpPrunesNoRecords writes hourly counts that exceed the size limit of the whole log, as huge names did in the
// past.
func TestRollUpPrunesNoRecords(t *testing.T) {
	volume.SkipUnderRace(t)
	t.Parallel()
	const limit = 4 << 20
	_, db, e := openLogWithRecords(t, 500)
	err := db.writeTx(t.Context(), func(c *sqliteWriteConn) error {
		for i := range 4 {
			err := c.exec(`INSERT INTO activity_hour (hour, type, server, tool, intent, status, records, duration, max_duration)
				VALUES (?, 'policy_decision', '', ?, '', 'blocked', 1, 0, 0)`,
				time.Now().UnixMicro()/microsecondsPerHour, fmt.Sprint(i, strings.Repeat("x", limit)))
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	tidyAll(t, db, time.Now(), activity.Retention{MaxBytes: limit})
	if n := e.countRows(t, "SELECT count(*) FROM activity"); n != 500 {
		t.Errorf("%d of 500 records remain", n)
	}
}

// TestCallsOfServers checks that CallsByServer counts calls by server, from a given hour on, without refused calls.
func TestCallsOfServers(t *testing.T) {
	volume.SkipUnderRace(t)
	t.Parallel()
	dir := t.TempDir()
	db := OpenSQLite(filepath.Join(dir, "mcpproxy.db"), nil)
	clock := activitytest.NewClock(time.Date(2026, 1, 1, 0, 30, 0, 0, time.UTC))
	l, err := activity.Open(activity.Options{Dir: filepath.Join(dir, "spool"), Now: clock.Now}, db)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := l.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, servers := range []string{"aab", "abbbc"} {
		for _, server := range servers {
			r := activity.Record{Type: activity.ToolCall, ServerName: string(server), ToolName: "x"}
			if err := l.Begin(&r); err != nil {
				t.Fatal(err)
			}
			if err := l.End(r.ID, activity.Outcome{Status: activity.Success}); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.AppendRefusal(&activity.Record{ServerName: "a", ToolName: "x"}); err != nil {
			t.Fatal(err)
		}
		clock.Advance(2 * time.Hour)
	}
	if _, err := l.List(t.Context(), activity.Filter{}); err != nil {
		t.Fatal(err)
	}
	for since, want := range map[time.Duration]string{5 * time.Hour: "map[a:3 b:4 c:1]", 3 * time.Hour: "map[a:1 b:3 c:1]", 0: "map[]"} {
		if calls, err := l.CallsByServer(t.Context(), clock.Now().Add(-since)); err != nil || fmt.Sprint(calls) != want {
			t.Errorf("CallsByServer of the last %s gave %v, %v, want %s", since, calls, err, want)
		}
	}
}
