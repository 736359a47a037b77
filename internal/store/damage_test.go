package store_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mcpproxy/internal/problem"
	"mcpproxy/internal/store"
	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/testutil/volume"
)

// openSQL opens the database file without using package store.
func openSQL(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func checkIntegrity(t *testing.T, path string) {
	t.Helper()
	var answer string
	if err := openSQL(t, path).QueryRow("PRAGMA integrity_check").Scan(&answer); err != nil || answer != "ok" {
		t.Errorf("integrity check: %s, %v", answer, err)
	}
}

func openLogAndDB(t *testing.T, dir string) (*activity.Log, *store.SQLite) {
	t.Helper()
	db := store.OpenWithShortPauses(filepath.Join(dir, "mcpproxy.db"))
	l, err := activity.Open(activity.Options{Dir: filepath.Join(dir, "spool"), AfterCheck: db.RewriteFilesIfDeleted}, db)
	if err != nil {
		t.Fatal(err)
	}
	return l, db
}

func closeLogAndDB(t *testing.T, l *activity.Log, db *store.SQLite) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), store.Patience)
	defer cancel()
	if err := errors.Join(l.Close(ctx), db.Close()); err != nil {
		t.Error(err)
	}
}

func addCalls(t *testing.T, l *activity.Log, n int) {
	t.Helper()
	for i := range n {
		r := activity.Record{Type: activity.ToolCall, ServerName: fmt.Sprint("server ", i%3), ClientName: fmt.Sprint("client ", i%5), Arguments: []byte(`{"text":"hello world"}`)}
		if err := l.Begin(&r); err != nil {
			t.Fatal(err)
		}
		if err := l.End(r.ID, activity.Outcome{Status: activity.Success, Duration: 2 * time.Millisecond}); err != nil {
			t.Fatal(err)
		}
	}
}

// newClosedDatabase creates a database with n records and closes it.
func newClosedDatabase(t *testing.T, n int) (dir string) {
	t.Helper()
	dir = t.TempDir()
	l, db := openLogAndDB(t, dir)
	addCalls(t, l, n)
	if _, err := l.List(t.Context(), activity.Filter{Search: "hello"}); err != nil {
		t.Fatal(err)
	}
	closeLogAndDB(t, l, db)
	return dir
}

// TestDamagedFiles opens copies of a database that are damaged in many ways. The database must either work, after the
// damaged file was renamed, or return a clear error. The records in the spool must exist.
func TestDamagedFiles(t *testing.T) {
	volume.SkipUnderRace(t)
	t.Parallel()
	dir := newClosedDatabase(t, volume.FullOrQuick(2500, 500))
	good, err := os.ReadFile(filepath.Join(dir, "mcpproxy.db"))
	if err != nil {
		t.Fatal(err)
	}
	const page = 4096
	damages := map[string]func(rnd *rand.Rand, b []byte) []byte{
		"flipped bits": func(rnd *rand.Rand, b []byte) []byte {
			for range 20 {
				b[rnd.IntN(len(b))] ^= 1 << rnd.IntN(8)
			}
			return b
		},
		"flipped bits in the head": func(rnd *rand.Rand, b []byte) []byte {
			for range 3 {
				b[rnd.IntN(page)] ^= 1 << rnd.IntN(8)
			}
			return b
		},
		"cut off": func(rnd *rand.Rand, b []byte) []byte { return b[:rnd.IntN(len(b))] },
		"a page of zeros": func(rnd *rand.Rand, b []byte) []byte {
			at := rnd.IntN(len(b)/page) * page
			clear(b[at : at+page])
			return b
		},
		"random pages": func(rnd *rand.Rand, b []byte) []byte {
			at := rnd.IntN(len(b)/page) * page
			for i := range page {
				b[at+i] = byte(rnd.Uint32())
			}
			return b
		},
		"no database": func(rnd *rand.Rand, b []byte) []byte { return bytes.Repeat([]byte("hello "), rnd.IntN(5000)) },
	}
	for name, damage := range damages {
		for seed := range uint64(volume.FullOrQuick(5, 2)) {
			t.Run(fmt.Sprint(name, " ", seed), func(t *testing.T) {
				useDamaged(t, damage(rand.New(rand.NewPCG(seed, 7)), bytes.Clone(good)))
			})
		}
	}
}

// listAfterChecks lists records after the file was checked often enough.
func listAfterChecks(t *testing.T, l *activity.Log, f activity.Filter) (activity.RecordPage, error) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(store.Patience); ; <-tick.C {
		page, err := l.List(t.Context(), f)
		if err == nil || time.Now().After(deadline) || strings.Contains(l.Health().Message, "this program knows") {
			return page, err
		}
	}
}

func useDamaged(t *testing.T, file []byte) {
	dir := t.TempDir()
	path := filepath.Join(dir, "mcpproxy.db")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	l, db := openLogAndDB(t, dir)
	addCalls(t, l, 20)
	var p *problem.Problem
	_, _ = listAfterChecks(t, l, activity.Filter{}) // an error is allowed, see below
	for _, f := range []activity.Filter{{}, {Servers: []string{"server 1"}}, {Limit: 1000}, {Search: "hello"}} {
		ctx, cancel := context.WithTimeout(t.Context(), store.Patience)
		page, err := l.List(ctx, f)
		cancel()
		if err != nil && (!errors.As(err, &p) || p.Code != problem.AuditUnavailable) {
			t.Errorf("%+v: %v", f, err)
		}
		if err == nil && page.Total < 6 {
			t.Errorf("%+v: got %d records", f, page.Total)
		}
	}
	_, err := db.LoadTools(t.Context())
	aside, _ := filepath.Glob(path + ".corrupt-*")
	t.Logf("tools: %v; renamed files: %d; health: %s", err, len(aside), l.Health().Message)
	closeLogAndDB(t, l, db)
	if len(aside) == 0 {
		return
	}
	kept, err := os.ReadFile(aside[0])
	if err != nil || len(kept) < len(file)/2 {
		t.Errorf("%d of %d bytes were kept, %v", len(kept), len(file), err)
	}
}

func TestDamagedFileIsReportedAndReplaced(t *testing.T) {
	t.Parallel()
	dir := newClosedDatabase(t, 50)
	path := filepath.Join(dir, "mcpproxy.db")
	if err := os.WriteFile(path, []byte(strings.Repeat("no database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	l, db := openLogAndDB(t, dir)
	defer closeLogAndDB(t, l, db)
	p, err := listAfterChecks(t, l, activity.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	if p.Total != 51 || p.Records[0].Type != activity.System || !strings.Contains(p.Records[0].ErrorMessage, "corrupt-") {
		t.Errorf("got %d records, the first is %+v", p.Total, p.Records[0])
	}
}

// TestDamageWhileRunning damages the file while the database is open.
func TestDamageWhileRunning(t *testing.T) {
	t.Parallel()
	dir := newClosedDatabase(t, volume.FullOrQuick(3000, 500))
	path := filepath.Join(dir, "mcpproxy.db")
	l, db := openLogAndDB(t, dir)
	defer closeLogAndDB(t, l, db)
	if err := db.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	junk := bytes.Repeat([]byte{0xa5}, int(info.Size())-100)
	if _, err := f.WriteAt(junk, 100); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	addCalls(t, l, 5)
	var total int64
	for total == 0 {
		p, err := l.List(t.Context(), activity.Filter{Types: []activity.Type{activity.ToolCall}})
		if total = p.Total; err != nil {
			var pr *problem.Problem
			if !errors.As(err, &pr) || pr.Code != problem.AuditUnavailable {
				t.Fatal(err)
			}
			total = 0
		}
	}
	if aside, _ := filepath.Glob(path + ".corrupt-*"); len(aside) == 0 || total < 5 {
		t.Errorf("got %d records, renamed files: %v", total, aside)
	}
}

// TestADamagedRecordDoesNotHideTheOthers damages a record in a way that SQLite cannot detect.
func TestADamagedRecordDoesNotHideTheOthers(t *testing.T) {
	volume.SkipUnderRace(t)
	t.Parallel()
	dir := newClosedDatabase(t, 10)
	raw := openSQL(t, filepath.Join(dir, "mcpproxy.db"))
	if _, err := raw.Exec("UPDATE activity SET entry = x'00ff' WHERE key = 8; UPDATE activity SET outcome = x'7b7d' WHERE key = 9"); err != nil {
		t.Fatal(err)
	}
	if err := raw.Close(); err != nil {
		t.Fatal(err)
	}
	l, db := openLogAndDB(t, dir)
	defer closeLogAndDB(t, l, db)
	addCalls(t, l, 1)
	p, err := l.List(t.Context(), activity.Filter{})
	if err != nil || p.Total != 11 || len(p.Records) != 11 {
		t.Fatalf("got %d of %d records, %v", len(p.Records), p.Total, err)
	}
	for i, r := range p.Records {
		if damaged := i == 1 || i == 2; damaged != strings.Contains(r.ErrorMessage, "damaged") {
			t.Errorf("record %d: %+v", i, r)
		}
	}
	if p, err := l.List(t.Context(), activity.Filter{Search: "hello", Statuses: []activity.Status{activity.Success}}); err != nil || p.Total != 9 {
		t.Errorf("the search found %d records, %v", p.Total, err)
	}
}

func TestANewerDatabaseIsLeftAlone(t *testing.T) {
	t.Parallel()
	dir := newClosedDatabase(t, 10)
	path := filepath.Join(dir, "mcpproxy.db")
	raw := openSQL(t, path)
	if _, err := raw.Exec("INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, 1)"); err != nil {
		t.Fatal(err)
	}
	if err := raw.Close(); err != nil {
		t.Fatal(err)
	}
	l, db := openLogAndDB(t, dir)
	if err := db.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "version 99") {
		t.Errorf("Ready gave %v", err)
	}
	addCalls(t, l, 3) // calls still work
	_, err := l.List(t.Context(), activity.Filter{})
	var p *problem.Problem
	if !errors.As(err, &p) || p.Code != problem.AuditUnavailable {
		t.Errorf("List gave %v", err)
	}
	if h := l.Health(); !h.Degraded || !strings.Contains(h.Message, "version 99") {
		t.Errorf("health = %+v", h)
	}
	closeLogAndDB(t, l, db)
	if aside, _ := filepath.Glob(path + ".corrupt-*"); len(aside) != 0 {
		t.Error("the newer database was renamed")
	}
}

func TestForeignDatabaseIsMovedAway(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "mcpproxy.db")
	raw := openSQL(t, path)
	if _, err := raw.Exec("CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)"); err != nil {
		t.Fatal(err)
	}
	if err := raw.Close(); err != nil {
		t.Fatal(err)
	}
	l, db := openLogAndDB(t, dir)
	if _, err := listAfterChecks(t, l, activity.Filter{}); err != nil {
		t.Error(err)
	}
	closeLogAndDB(t, l, db)
	aside, _ := filepath.Glob(path + ".corrupt-*")
	if len(aside) != 1 {
		t.Fatal("the foreign database was not kept")
	}
	var n int
	if err := openSQL(t, aside[0]).QueryRow("SELECT count(*) FROM theirs").Scan(&n); err != nil || n != 1 {
		t.Errorf("got %d rows, %v", n, err)
	}
}

// TestADamagedSchema flips a bit in the name of a column, which SQLite does not detect.
func TestADamagedSchema(t *testing.T) {
	volume.SkipUnderRace(t)
	t.Parallel()
	for _, name := range []string{"next_key", "blocked_by"} {
		dir := newClosedDatabase(t, 10)
		path := filepath.Join(dir, "mcpproxy.db")
		file, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		file = bytes.ReplaceAll(file, []byte(name), []byte(strings.ToUpper(name[:1])+"x"+name[2:]))
		if err := os.WriteFile(path, file, 0o600); err != nil {
			t.Fatal(err)
		}
		l, db := openLogAndDB(t, dir)
		_, _ = db.LoadApprovals(t.Context()) // as the daemon does
		_, _ = listAfterChecks(t, l, activity.Filter{})
		tick := time.NewTicker(20 * time.Millisecond)
		for deadline := time.Now().Add(store.Patience); time.Now().Before(deadline); <-tick.C {
			if _, err = db.LoadApprovals(t.Context()); err == nil {
				break
			}
		}
		tick.Stop()
		addCalls(t, l, 1)
		if p, listErr := listAfterChecks(t, l, activity.Filter{Types: []activity.Type{activity.ToolCall}}); err != nil || listErr != nil || p.Total != 11 {
			t.Errorf("%s: got %d records, %v, %v", name, p.Total, err, listErr)
		}
		if aside, _ := filepath.Glob(path + ".corrupt-*"); len(aside) == 0 {
			t.Errorf("%s: the damaged file was not kept", name)
		}
		closeLogAndDB(t, l, db)
	}
}

// TestADamagedTableOfVersions checks that an unreadable table of versions counts as damage. goose treats such a table
// as missing.
func TestADamagedTableOfVersions(t *testing.T) {
	t.Parallel()
	dir := newClosedDatabase(t, 5)
	path := filepath.Join(dir, "mcpproxy.db")
	db := openSQL(t, path)
	var root, size int64
	if err := db.QueryRow("SELECT rootpage, (SELECT page_size FROM pragma_page_size) FROM sqlite_master WHERE name = 'goose_db_version'").Scan(&root, &size); err != nil {
		t.Fatal(err)
	}
	db.Close()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(make([]byte, size), (root-1)*size); err != nil {
		t.Fatal(err)
	}
	f.Close()
	l, opened := openLogAndDB(t, dir)
	defer closeLogAndDB(t, l, opened)
	for deadline := time.Now().Add(store.Patience); opened.Ready(t.Context()) != nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(opened.Ready(t.Context()))
		}
	}
	if aside, _ := filepath.Glob(path + ".corrupt*"); len(aside) == 0 {
		t.Error("the damaged file was not renamed")
	}
}

// TestUnopenableDatabaseRecovers starts without the directory of the database.
func TestUnopenableDatabaseRecovers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	blocked := filepath.Join(dir, "data")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	db := store.OpenSQLite(filepath.Join(blocked, "mcpproxy.db"), nil)
	l, err := activity.Open(activity.Options{Dir: filepath.Join(dir, "spool")}, db)
	if err != nil {
		t.Fatal(err)
	}
	defer closeLogAndDB(t, l, db)
	addCalls(t, l, 3)
	if err := db.Ready(t.Context()); err == nil {
		t.Fatal("the database opened")
	}
	if _, err := l.List(t.Context(), activity.Filter{}); err == nil {
		t.Fatal("the query succeeded")
	}
	if err := os.Remove(blocked); err != nil {
		t.Fatal(err)
	}
	for {
		p, err := l.List(t.Context(), activity.Filter{})
		if err == nil {
			if p.Total != 3 {
				t.Errorf("got %d records", p.Total)
			}
			return
		}
	}
}

func TestTheFileIsForItsOwnerOnly(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new", "data")
	path := filepath.Join(dir, "odd name?#%41.db")
	db := store.OpenSQLite(path, nil)
	defer db.Close()
	if err := db.SaveTools(t.Context(), "one", nil); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]os.FileMode{dir: 0o700, path: 0o600, path + "-wal": 0o600} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %o, want %o", name, got, want)
		}
	}
}
