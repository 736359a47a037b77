package store

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/testutil/volume"
)

// openLogWithRecords opens a log with n records in a database.
func openLogWithRecords(t *testing.T, n int) (*activity.Log, *SQLite, *sqliteEngine) {
	t.Helper()
	dir := t.TempDir()
	db := OpenSQLite(filepath.Join(dir, "mcpproxy.db"), nil)
	l, err := activity.Open(activity.Options{Dir: filepath.Join(dir, "spool")}, db)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), Patience)
		defer cancel()
		if err := l.Close(ctx); err != nil {
			t.Error(err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	addWords(t, l, n)
	e, err := db.waitOpen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return l, db, e
}

func addWords(t *testing.T, l *activity.Log, n int) {
	t.Helper()
	for i := range n {
		r := activity.Record{Type: activity.System, ErrorMessage: fmt.Sprint("word", i%10)}
		if err := l.Append(&r); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.List(t.Context(), activity.Filter{}); err != nil {
		t.Fatal(err)
	}
}

// TestSearchIncludesUnindexedRecords searches while parts of the text index are missing, and checks that this does not
// affect the result.
func TestSearchIncludesUnindexedRecords(t *testing.T) {
	volume.SkipUnderRace(t)
	t.Parallel()
	const records = 5000
	_, _, e := openLogWithRecords(t, records)
	for {
		total := int64(0)
		err := e.query(t.Context(), &activity.Filter{Search: "word7"}, nil, func(_ context.Context, v *recordSnapshot) error { total = v.sel.count(); return nil })
		if err != nil {
			t.Fatal(err)
		}
		if total != records/10 {
			_, left := e.oldestUnindexedChunk()
			t.Errorf("found %d records with %d chunks unindexed, want %d", total, left, records/10)
		}
		if _, left := e.oldestUnindexedChunk(); left == 0 {
			return
		}
		if _, err := e.indexTextOfNextChunk(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestIndexIsReloadedAfterAFailure checks that the index is read again after a failed commit, because the file may
// contain the transaction.
func TestIndexIsReloadedAfterAFailure(t *testing.T) {
	volume.SkipUnderRace(t)
	t.Parallel()
	l, db, e := openLogWithRecords(t, 1500)
	e.writing.Lock()
	e.index.nextKey -= 10 // the state after such a failure
	for f := range e.index.tail.columns {
		e.index.tail.columns[f] = e.index.tail.columns[f][:len(e.index.tail.columns[f])-10]
	}
	e.index.tail.times = e.index.tail.times[:len(e.index.tail.times)-10]
	e.writing.Unlock()
	failing, cancel := context.WithCancel(t.Context())
	cancel()
	if err := db.ProjectEntries(failing, nil, activity.SpoolPosition{}); err == nil {
		t.Fatal("the projection succeeded, want an error")
	}
	if _, _, err := db.ResumePosition(t.Context()); err != nil {
		t.Fatal(err)
	}
	addWords(t, l, 10)
	if p, err := l.List(t.Context(), activity.Filter{}); err != nil || p.Total != 1510 {
		t.Errorf("got %d records, %v", p.Total, err)
	}
}

func TestExpiredResultsAreRemoved(t *testing.T) {
	t.Parallel()
	_, db, e := openLogWithRecords(t, 1)
	now := time.Now()
	for i := range 3 {
		r := StoredResult{Handle: fmt.Sprint(i), Body: []byte("1"), Expires: now.Add(time.Duration(i+1) * time.Hour)}
		if err := db.PutResult(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := db.Tidy(t.Context(), now.Add(2*time.Hour), activity.Retention{}, false); err != nil {
		t.Fatal(err)
	}
	var left int
	if err := e.reads.QueryRow("SELECT count(*) FROM result").Scan(&left); err != nil || left != 1 {
		t.Errorf("%d results remain, %v", left, err)
	}
}

// TestWriteAfterTheEngineIsClosed writes with a connection that has since been closed for a check of the file.
func TestWriteAfterTheEngineIsClosed(t *testing.T) {
	t.Parallel()
	e, err := openSQLiteEngine(t.Context(), filepath.Join(t.TempDir(), "mcpproxy.db"), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	write := func() error {
		return e.writeConn.runTx(t.Context(), func() error {
			e.writeConn.write("DELETE FROM ended_session")
			return nil
		})
	}
	if err := write(); err != nil {
		t.Fatal(err)
	}
	if err := e.close(); err != nil {
		t.Fatal(err)
	}
	if err := write(); !errors.Is(err, errWriteConnClosed) {
		t.Errorf("got %v", err)
	}
}
