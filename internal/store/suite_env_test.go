package store_test

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"mcpproxy/internal/store"
	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/testutil/activitytest"
	"mcpproxy/internal/testutil/volume"
)

// storeOpener opens the store in a test folder. Opening the same folder again opens the same store.
type storeOpener func(t *testing.T, dir string) store.Database

// severalChunks returns a number of records that fills several chunks.
func severalChunks() int { return volume.FullOrQuick(3500, 2100) }

// testEnv is an activity log on top of a store, both in one folder.
type testEnv struct {
	t     *testing.T
	open  storeOpener
	dir   string
	clock *activitytest.Clock
	log   *activity.Log
	store store.Database
}

func startEnv(t *testing.T, open storeOpener) *testEnv {
	e := &testEnv{t: t, open: open, dir: t.TempDir(), clock: activitytest.NewClock(time.Date(2026, 1, 15, 10, 30, 0, 0, time.UTC))}
	e.openAll()
	t.Cleanup(func() {
		if e.log != nil {
			e.closeAll()
		}
	})
	return e
}

// openAll opens the log and the store.
func (e *testEnv) openAll() {
	e.t.Helper()
	e.store = e.open(e.t, e.dir)
	log, err := activity.Open(activity.Options{Dir: filepath.Join(e.dir, "spool"), Now: e.clock.Now}, e.store)
	if err != nil {
		e.t.Fatal(err)
	}
	e.log = log
}

func (e *testEnv) closeAll() {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := e.log.Close(ctx); err != nil {
		e.t.Errorf("close the log: %v", err)
	}
	if err := e.store.Close(); err != nil {
		e.t.Errorf("close the store: %v", err)
	}
	e.log = nil
}

func (e *testEnv) beginRecord(r activity.Record) activity.Record {
	e.t.Helper()
	if err := e.log.Begin(&r); err != nil {
		e.t.Fatal(err)
	}
	return r
}

func (e *testEnv) endRecord(id string, s activity.Status) {
	e.t.Helper()
	if err := e.log.End(id, activity.Outcome{Status: s, Duration: time.Millisecond}); err != nil {
		e.t.Fatal(err)
	}
}

// appendRecord writes a record of an event that has already ended.
func (e *testEnv) appendRecord(r activity.Record) activity.Record {
	e.t.Helper()
	if err := e.log.Append(&r); err != nil {
		e.t.Fatal(err)
	}
	return r
}

func (e *testEnv) listPage(f activity.Filter) activity.RecordPage {
	e.t.Helper()
	p, err := e.log.List(e.t.Context(), f)
	if err != nil {
		e.t.Fatalf("list %+v: %v", f, err)
	}
	return p
}

// allRecords lists all records, oldest first.
func (e *testEnv) allRecords() (out []activity.Record) {
	e.t.Helper()
	for f := (activity.Filter{Limit: 1000}); ; {
		p := e.listPage(f)
		out = append(out, p.Records...)
		if f.Cursor = p.NextCursor; f.Cursor != "" {
			continue
		}
		if p.Incomplete || p.Total != int64(len(out)) {
			e.t.Fatalf("the pages contain %d of %d records, incomplete = %v", len(out), p.Total, p.Incomplete)
		}
		slices.Reverse(out)
		return out
	}
}

// tidyFully calls Tidy until nothing is left to do.
func (e *testEnv) tidyFully(keep activity.Retention) {
	e.t.Helper()
	e.listPage(activity.Filter{Limit: 1}) // waits until all entries are projected
	for {
		more, err := e.store.Tidy(e.t.Context(), e.clock.Now(), keep, true)
		if err != nil {
			e.t.Fatal(err)
		}
		if !more {
			return
		}
	}
}

func recordIDs(records []activity.Record) []string {
	out := make([]string, len(records))
	for i, r := range records {
		out[i] = r.ID
	}
	return out
}
