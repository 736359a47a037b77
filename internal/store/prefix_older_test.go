//go:build unix

package store

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"

	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/testutil/pgtest"
	"mcpproxy/internal/testutil/volume"
)

// upgradeRecords is the number of records in these tests, a little more than three chunks.
const upgradeRecords = 3*chunkSize + 100

// fillLog opens a log on top of a database and fills it with records.
func fillLog(t *testing.T, dir string, db activity.Store) *activity.Log {
	t.Helper()
	l, err := activity.Open(activity.Options{Dir: filepath.Join(dir, "spool")}, db)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close(context.Background()) })
	for i := range upgradeRecords {
		if err := l.Append(mixedRecord(i)); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

// checkSearchesAgreeWithScan compares prefix searches with a scan of all records.
func checkSearchesAgreeWithScan(t *testing.T, when string, l *activity.Log) {
	t.Helper()
	ctx := t.Context()
	searches := []string{"n*", "number-*", "number-1*", "number-10*", "number-102*", "number-1023*", "1*", "20*", "x*", "sta*", "hello-w*", "number-2* 20*", "numberless*"}
	want := make([]int64, len(searches))
	err := l.EachRecord(ctx, activity.Filter{}, func(r *activity.Record) error {
		entry := fmt.Appendf(nil, `{"arguments":%s,"response":%s,"reason":%q}`, r.Arguments, r.Response, "The user asked to file what they found")
		for i, search := range searches {
			s := newRecordMatcher(parseSearchTerms(search))
			s.split.splitJSON(entry)
			if s.found == 1<<len(s.terms)-1 {
				want[i]++
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, search := range searches {
		page, err := l.List(ctx, activity.Filter{Search: search})
		if err != nil || page.Total != want[i] {
			t.Errorf("%s: the search for %q found %d records, want %d; %v", when, search, page.Total, want[i], err)
		}
	}
}

// decodeOldPages decodes the pages of segments that an older version wrote.
func decodeOldPages(t *testing.T, pages map[int64][][]byte) map[int64][]textIndexPage {
	t.Helper()
	out := map[int64][]textIndexPage{}
	for segment, all := range pages {
		x := &segmentWords{words: map[string]postingList{}}
		for _, data := range all {
			if err := x.addPageWords(data); err != nil {
				t.Fatal(err)
			}
		}
		out[segment] = pagesWithoutPrefixes(x)
	}
	return out
}

// TestTextIndexOfAnOlderVersion checks that searches in a text index without prefix entries return the same results.
func TestTextIndexOfAnOlderVersion(t *testing.T) {
	volume.SkipUnderRace(t)
	t.Parallel()
	dir := t.TempDir()
	db := OpenSQLite(filepath.Join(dir, "mcpproxy.db"), nil)
	t.Cleanup(func() { _ = db.Close() })
	l := fillLog(t, dir, db)
	checkSearchesAgreeWithScan(t, "new", l)
	e := db.engine
	pages := map[int64][][]byte{}
	var segment int64
	var data []byte
	if err := eachRow(t.Context(), e.reads, scanTargets{&segment, &data}, func() error {
		pages[segment] = append(pages[segment], append([]byte(nil), data...))
		return nil
	}, "SELECT segment, data FROM activity_text"); err != nil {
		t.Fatal(err)
	}
	e.writing.Lock()
	err := e.writeConn.runTx(t.Context(), func() error {
		e.writeConn.write("DELETE FROM activity_text")
		for segment, all := range decodeOldPages(t, pages) {
			for _, p := range all {
				e.writeConn.write("INSERT INTO activity_text (segment, first, data) VALUES (?, ?, ?)", segment, p.first, p.data)
			}
		}
		return nil
	})
	e.writing.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	checkSearchesAgreeWithScan(t, "older", l)
}

// TestPostgresTextIndexOfAnOlderVersion is the same test for PostgreSQL.
func TestPostgresTextIndexOfAnOlderVersion(t *testing.T) {
	volume.SkipUnderRace(t)
	t.Parallel()
	dir := t.TempDir()
	db, err := openPostgres(pgtest.SharedServer(t).CreateDatabase(t), dir, nil, Patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	l := fillLog(t, dir, db)
	checkSearchesAgreeWithScan(t, "new", l)
	lacking := func() (n int64) {
		t.Helper()
		err := db.withReadConn(t.Context(), func(ctx context.Context, c *pgConn) error {
			_, err := c.firstRow(ctx, scanTargets{&n}, `SELECT count(*) FROM activity_segment s
				WHERE NOT EXISTS (SELECT FROM activity_text t WHERE t.segment = s.segment AND t.instance = s.instance AND t.first = '\x00')`)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	err = db.writeTx(t.Context(), func(ctx context.Context, c *pgConn) error {
		pages := map[int64][][]byte{}
		var segment int64
		var data sql.RawBytes
		if err := c.eachRow(ctx, scanTargets{&segment, &data}, func() error {
			pages[segment] = append(pages[segment], append([]byte(nil), data...))
			return nil
		}, "SELECT segment, data FROM activity_text"); err != nil {
			return err
		}
		if _, err := c.exec(ctx, "DELETE FROM activity_text"); err != nil {
			return err
		}
		rows := pgCopyRows{table: "activity_text (instance, segment, first, data)"}
		for segment, all := range decodeOldPages(t, pages) {
			for _, p := range all {
				rows.addRow(int32(c.instance), segment, p.first, p.data)
			}
		}
		return rows.send(ctx, c)
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := lacking(); n < 2 {
		t.Fatalf("%d segments have no prefix entries, want some", n)
	}
	checkSearchesAgreeWithScan(t, "older", l)
}
