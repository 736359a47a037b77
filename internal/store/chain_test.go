package store_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"mcpproxy/internal/store"
	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/testutil/volume"
)

// TestTheDatabaseHasTheWholeChain verifies the chain using only the database, before and after pruning.
func TestTheDatabaseHasTheWholeChain(t *testing.T) {
	volume.SkipUnderRace(t)
	t.Parallel()
	dir := t.TempDir()
	l, db := openLogAndDB(t, dir)
	var running []string
	rounds := volume.FullOrQuick(60, 15)
	for i := range rounds { // long calls, whose ends are much later than their beginnings
		r := activity.Record{Type: activity.ToolCall}
		if err := l.Begin(&r); err != nil {
			t.Fatal(err)
		}
		running = append(running, r.ID)
		addCalls(t, l, 50)
		if i >= 10 {
			if err := l.End(running[i-10], activity.Outcome{Status: activity.Success}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := l.List(t.Context(), activity.Filter{}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "mcpproxy.db")
	if n := checkChainInFile(t, path); n != int64(rounds*102-10) {
		t.Errorf("the chain has %d entries", n)
	}
	checkPreviousHashes(t, l)
	for _, keep := range []int64{int64(rounds) * 125 / 3, int64(rounds) * 50 / 3, 3} {
		for more := true; more; {
			var err error
			if more, err = db.Tidy(t.Context(), time.Now(), activity.Retention{MaxRecords: keep}, false); err != nil {
				t.Fatal(err)
			}
		}
		if n := checkChainInFile(t, path); n < keep {
			t.Errorf("the chain has %d entries for %d records", n, keep)
		}
		if there := checkPreviousHashes(t, l); there != keep || db.RecordCount() != keep {
			t.Errorf("got %d records, RecordCount = %d, want %d", there, db.RecordCount(), keep)
		}
	}
	closeLogAndDB(t, l, db)
}

// TestTheChainIsWholeAroundRefusals prunes refusals between calls. Their counts were written several times.
func TestTheChainIsWholeAroundRefusals(t *testing.T) {
	volume.SkipUnderRace(t)
	t.Parallel()
	dir := t.TempDir()
	l, db := openLogAndDB(t, dir)
	path := filepath.Join(dir, "mcpproxy.db")
	tidy := func(keep activity.Retention) {
		t.Helper()
		if _, err := l.List(t.Context(), activity.Filter{}); err != nil {
			t.Fatal(err)
		}
		for more := true; more; {
			var err error
			if more, err = db.Tidy(t.Context(), time.Now(), keep, true); err != nil {
				t.Fatal(err)
			}
		}
	}
	var entries int64
	each := int64(volume.FullOrQuick(100, 60))
	for round := range 4 {
		for i := range each { // the same calls again, so that their counts are written again
			addCalls(t, l, 2)
			for range 10 {
				if err := l.Append(&activity.Record{Type: activity.PolicyDecision, Status: activity.Blocked}); err != nil {
					t.Fatal(err)
				}
			}
			for range 2 {
				if err := l.AppendRefusal(&activity.Record{ToolName: fmt.Sprint(i), Actor: "agent"}); err != nil {
					t.Fatal(err)
				}
			}
		}
		closeLogAndDB(t, l, db)
		entries += each * (10 + 1 + 1 + 4)
		if n := checkChainInFile(t, path); n != entries {
			t.Errorf("the chain has %d entries, want %d", n, entries)
		}
		l, db = openLogAndDB(t, dir)
		tidy(activity.Retention{MaxRecords: 10 * each})
		if n := checkChainInFile(t, path); n != entries {
			t.Errorf("round %d: the chain has %d of %d entries", round, n, entries)
		}
	}
	gaps := queryCount(t, path, "SELECT count(*) FROM activity_gap")
	calls := queryCount(t, path, "SELECT count(*) FROM activity WHERE outcome IS NOT NULL AND CAST(entry AS TEXT) LIKE '%\"tool_call\"%'")
	if gone := entries/16*13 - queryCount(t, path, "SELECT count(*) FROM activity") + calls; calls != 8*each || gone < 10*each || gaps > gone/5 {
		t.Errorf("%d calls remain; %d other records were pruned and left %d gaps", calls, gone, gaps)
	}
	checkPreviousHashes(t, l)
	tidy(activity.Retention{MaxRecords: 10})
	checkChainInFile(t, path)
	checkPreviousHashes(t, l)
	closeLogAndDB(t, l, db)
}

// checkPreviousHashes reads every third record with Get. It fails unless each record has the hash of the previous
// entry, even if entries were pruned. Get verifies the hash, so the test checks only that it exists. It returns the
// number of records.
func checkPreviousHashes(t *testing.T, l *activity.Log) (there int64) {
	t.Helper()
	f := activity.Filter{Limit: 1000}
	for {
		page, err := l.List(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page.Records {
			there++
			if r.Chain != nil {
				t.Fatal("a listed record has its position in the chain")
			}
			if there%3 != 0 {
				continue
			}
			r, err := l.Get(t.Context(), r.ID)
			if err != nil {
				t.Fatal(err)
			}
			c := r.Chain
			if len(c.Hash) != 64 || len(c.Previous) != 64 || (c.EndSeq != 0) != (r.Type == activity.ToolCall && r.Status != activity.Pending || r.Repeated > 1) || (c.EndSeq != 0) != (len(c.EndHash) == 64) {
				t.Fatalf("record %s with status %s and %d repetitions: %+v", r.ID, r.Status, r.Repeated, c)
			}
		}
		if f.Cursor = page.NextCursor; f.Cursor == "" {
			return there
		}
	}
}

func queryCount(t *testing.T, path, query string) (n int64) {
	t.Helper()
	if err := openSQL(t, path).QueryRow(query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// checkChainInFile verifies every entry in the database and returns the number of entries.
func checkChainInFile(t *testing.T, path string) int64 {
	t.Helper()
	db := openSQL(t, path)
	var at int64
	var prev activity.Hash
	var hash []byte
	if err := db.QueryRow("SELECT seq, hash FROM activity_checkpoint").Scan(&at, &hash); err != nil && err != sql.ErrNoRows {
		t.Fatal(err)
	}
	copy(prev[:], hash)
	rows, err := db.Query(`SELECT seq, seq, hash, entry FROM activity WHERE entry IS NOT NULL
		UNION ALL SELECT end_seq, end_seq, end_hash, outcome FROM activity WHERE outcome IS NOT NULL
		UNION ALL SELECT first, seq, hash, NULL FROM activity_gap ORDER BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var n int64
	for rows.Next() {
		var first, seq int64
		var payload []byte
		if err := rows.Scan(&first, &seq, &hash, &payload); err != nil {
			t.Fatal(err)
		}
		if first != at+1 {
			t.Fatalf("entry %d follows entry %d", first, at)
		}
		want := activity.Hash(hash)
		if payload != nil && !bytes.Equal(store.NextChainHash(prev[:], payload), hash) {
			t.Fatalf("the hash of entry %d does not match", seq)
		}
		n += seq - at
		at, prev = seq, want
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	var last int64
	if err := db.QueryRow("SELECT seq FROM activity_position").Scan(&last); err != nil || last != at {
		t.Fatalf("the chain ends at %d, but the position is %d, %v", at, last, err)
	}
	return n
}

// TestRollUpCountsEndedCalls compares the hourly counts with the records.
func TestRollUpCountsEndedCalls(t *testing.T) {
	volume.SkipUnderRace(t)
	t.Parallel()
	dir := t.TempDir()
	l, db := openLogAndDB(t, dir)
	addCalls(t, l, 300)
	late := activity.Record{Type: activity.ToolCall, ServerName: "slow"}
	for _, r := range []*activity.Record{&late, {Type: activity.ToolCall, ServerName: "never"}} {
		if err := l.Begin(r); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.List(t.Context(), activity.Filter{}); err != nil {
		t.Fatal(err)
	}
	if err := l.End(late.ID, activity.Outcome{Status: activity.Failed, Duration: 7 * time.Second}); err != nil {
		t.Fatal(err)
	}
	if err := l.Append(&activity.Record{Type: activity.PolicyDecision, Status: activity.Blocked, ServerName: "x"}); err != nil {
		t.Fatal(err)
	}
	closeLogAndDB(t, l, db)
	rows, err := openSQL(t, filepath.Join(dir, "mcpproxy.db")).Query(
		"SELECT server, status, sum(records), sum(duration), max(max_duration) FROM activity_hour GROUP BY server, status")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	got := map[string][3]int64{}
	for rows.Next() {
		var server, status string
		var n [3]int64
		if err := rows.Scan(&server, &status, &n[0], &n[1], &n[2]); err != nil {
			t.Fatal(err)
		}
		got[server+" "+status] = n
	}
	want := map[string][3]int64{
		"server 0 success": {100, 200, 2}, "server 1 success": {100, 200, 2}, "server 2 success": {100, 200, 2},
		"slow error": {1, 7000, 7000}, "x blocked": {1, 0, 0},
	}
	if len(got) != len(want) {
		t.Errorf("got %v", got)
	}
	for k, v := range want {
		if got[k] != v {
			t.Errorf("%s: %v, want %v", k, got[k], v)
		}
	}
}

func TestPeopleCanReadTheDatabase(t *testing.T) {
	t.Parallel()
	dir := newClosedDatabase(t, 5)
	var id, status, server string
	err := openSQL(t, filepath.Join(dir, "mcpproxy.db")).
		QueryRow("SELECT id, status, server FROM activity_record ORDER BY key DESC LIMIT 1").Scan(&id, &status, &server)
	if err != nil || len(id) != 26 || status != "success" || server != "server 1" {
		t.Errorf("%s, %s, %s, %v", id, status, server, err)
	}
}
