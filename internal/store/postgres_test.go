//go:build unix

package store_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store"
	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/testutil/pgtest"
	"mcpproxy/internal/testutil/volume"
)

// openPostgres opens a database and waits until it is open. A log waits only two seconds for its database, which is too
// short on a busy machine.
func openPostgres(t *testing.T, address, dir string) *store.Postgres {
	t.Helper()
	db, err := store.OpenPostgres(address, dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if _, err := db.LoadApprovals(t.Context()); err != nil {
		t.Fatal(err)
	}
	return db
}

// TestPostgres runs the suite with a real server.
func TestPostgres(t *testing.T) {
	t.Parallel()
	server := pgtest.SharedServer(t)
	var mu sync.Mutex // guards databases
	databases := map[string]string{}
	database := func(t *testing.T, dir string) string {
		mu.Lock()
		defer mu.Unlock()
		if databases[dir] == "" {
			databases[dir] = server.CreateDatabase(t)
		}
		return databases[dir]
	}
	runSuite(t, func(t *testing.T, dir string) store.Database { return openPostgres(t, database(t, dir), dir) })
}

// TestPostgresShared checks that an instance must load the decisions of another instance before it can make a decision,
// and that it is notified of them. It also checks that an instance can erase only its own records.
func TestPostgresShared(t *testing.T) {
	t.Parallel()
	address := pgtest.SharedServer(t).CreateDatabase(t)
	open := func() *store.Postgres {
		db := openPostgres(t, address, t.TempDir())
		<-db.RemoteChangeSignal()
		db.TakeRemoteChanges()
		return db
	}
	one, other := open(), open()
	off := approval.AuthorAndTime{By: "admin", At: time.UnixMicro(1)}
	change := approval.ChangeSet{Server: "a server", Tools: []approval.DecisionRow{{Tool: "t", DefinitionDecisions: approval.DefinitionDecisions{Off: &off}}}}
	if err := one.SaveApprovals(t.Context(), change); err != nil {
		t.Fatal(err)
	}
	if err := other.SaveApprovals(t.Context(), approval.ChangeSet{Server: "a server", Tools: []approval.DecisionRow{{Tool: "t"}}}); !errors.Is(err, approval.ErrStale) {
		t.Errorf("an instance with outdated decisions could decide: %v", err)
	}
	<-other.RemoteChangeSignal()
	if news := other.TakeRemoteChanges(); len(news.Servers) != 1 || news.Servers["a server"] {
		t.Errorf("TakeRemoteChanges gave %+v", news)
	}
	saved, err := other.LoadApprovals(t.Context())
	if err != nil || saved.Tools["a server"][0].Off == nil {
		t.Errorf("LoadApprovals gave %+v, %v", saved, err)
	}
	if err := other.SaveApprovals(t.Context(), change); err != nil {
		t.Errorf("an instance with current decisions cannot decide: %v", err)
	}

	logs := map[*store.Postgres]*activity.Log{}
	for _, db := range []*store.Postgres{one, other} {
		l, err := activity.Open(activity.Options{Dir: t.TempDir()}, db)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close(context.Background()) })
		logs[db] = l
	}
	var want []string
	for i := range 60 {
		l := logs[[]*store.Postgres{one, other}[i/7%2]]
		r := activity.Record{Type: activity.System, ServerName: "s", ErrorMessage: "words"}
		if err := l.Append(&r); err != nil {
			t.Fatal(err)
		}
		want = append(want, r.ID)
		if i%9 == 0 {
			if _, err := l.List(t.Context(), activity.Filter{Limit: 1}); err != nil {
				t.Fatal(err)
			}
		}
	}
	slices.Sort(want)
	slices.Reverse(want)
	for _, db := range []*store.Postgres{one, other} { // waits until all entries of both logs are stored
		if _, err := logs[db].List(t.Context(), activity.Filter{Limit: 1}); err != nil {
			t.Fatal(err)
		}
	}
	for _, offset := range []int{0, 13} {
		var got []string
		for f := (activity.Filter{Servers: []string{"s"}, Search: "words", Limit: 7, Offset: offset}); ; {
			p, err := logs[one].List(t.Context(), f)
			if err != nil || p.Total != 60 {
				t.Fatalf("total = %d, %v", p.Total, err)
			}
			for _, r := range p.Records {
				got = append(got, r.ID)
			}
			if f.Cursor, f.Offset = p.NextCursor, 0; f.Cursor == "" {
				break
			}
		}
		if !slices.Equal(got, want[offset:]) {
			t.Errorf("from offset %d, the pages contain\n%v, want\n%v", offset, got, want[offset:])
		}
	}
	refused := 0
	for _, id := range want {
		if _, err := one.GetStoredRecord(t.Context(), id); err != nil {
			if p, ok := errors.AsType[*problem.Problem](err); !ok || p.Code != problem.Conflict {
				t.Error(err)
			}
			refused++
		}
	}
	if refused == 0 || refused == len(want) {
		t.Errorf("%d of %d records belong to another instance", refused, len(want))
	}
	if v, err := logs[one].Verify(t.Context()); err != nil || !v.OK || v.Records < 60 {
		t.Errorf("%+v, %v, %v", v, v.FirstBreak, err)
	}
}

// TestPostgresMigrates migrates the tables of an earlier version, after the server was killed during the migration.
func TestPostgresMigrates(t *testing.T) {
	volume.SkipUnderRace(t)
	t.Parallel()
	server := pgtest.StartServer(t)
	address, dir := server.CreateDatabase(t), t.TempDir()
	query := func(statements string) string {
		t.Helper()
		out, err := server.QueryIn("d1", "SET search_path = mcpproxy; "+statements)
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return strings.TrimPrefix(out, "SET\n")
	}
	add := func(n int) activity.RecordPage {
		t.Helper()
		db := openPostgres(t, address, dir)
		defer db.Close()
		l, err := activity.Open(activity.Options{Dir: filepath.Join(dir, "spool")}, db)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close(context.Background())
		for i := range n {
			if err := l.Append(&activity.Record{Type: activity.System, ServerName: fmt.Sprint("s", i%3)}); err != nil {
				t.Fatal(err)
			}
		}
		page, err := l.List(t.Context(), activity.Filter{Servers: []string{"s1"}, Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		return page
	}
	add(3000)
	query(`DELETE FROM migration WHERE version > 2; DROP VIEW activity_records; DROP TABLE pause, learned_session, session_key, ended_session, presence_statement, presence_anchor; ALTER TABLE activity_column RESET (toast_tuple_target);
		ALTER TABLE approval DROP COLUMN before, DROP COLUMN before_hints, DROP COLUMN before_definition, DROP COLUMN before_by, DROP COLUMN before_at,
			DROP COLUMN before_blocked, DROP COLUMN before_blocked_by, DROP COLUMN before_blocked_at`)

	// Another session locks the table, so that the migration has to wait in the middle of its transaction.
	held := make(chan struct{})
	go func() {
		defer close(held)
		_, _ = server.QueryIn("d1", "BEGIN; LOCK TABLE mcpproxy.activity_column; SELECT pg_sleep(60)") // the kill ends it
	}()
	waits := func(where string) {
		t.Helper()
		for until := time.Now().Add(store.Patience); query("SELECT count(*) FROM pg_locks WHERE "+where) == "0"; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(until) {
				t.Fatal("timed out: " + where)
			}
		}
	}
	waits("relation = 'activity_column'::regclass AND mode = 'AccessExclusiveLock' AND granted")
	db, err := store.OpenPostgres(address, dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	waits("relation = 'activity_column'::regclass AND NOT granted")
	server.Kill()
	<-held
	db.Close()
	if err := server.StartProcess(); err != nil {
		t.Fatal(err)
	}
	if version := query("SELECT max(version) FROM migration"); version != "2" {
		t.Errorf("after the kill, the tables have version %s", version)
	}

	if page := add(3000); page.Total != 2000 {
		t.Errorf("got %d of 2,000 records", page.Total)
	}
	if now := query("SELECT max(version), (SELECT reloptions FROM pg_class WHERE oid = 'activity_column'::regclass) FROM migration"); now != "9|{toast_tuple_target=8160}" {
		t.Errorf("after the migration, the tables are %s", now)
	}
	query("INSERT INTO migration (version) VALUES (99)")
	newer, err := store.OpenPostgres(address, dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer newer.Close()
	if _, _, err := newer.ResumePosition(t.Context()); err == nil || !strings.Contains(err.Error(), "this program supports up to 9") {
		t.Errorf("opening the tables of a later version gave %v", err)
	}
}

// TestPostgresMutations changes the logs of two instances at random, and swaps parts of them. Verify must detect every
// change, from either instance. MCPPROXY_MUTATIONS sets the number of changes.
func TestPostgresMutations(t *testing.T) {
	volume.SkipUnderRace(t)
	t.Parallel()
	n := volume.FullOrQuick(30, 15)
	if set, err := strconv.Atoi(os.Getenv("MCPPROXY_MUTATIONS")); err == nil {
		n = set
	}
	const records = 700
	server := pgtest.SharedServer(t)
	address := server.CreateDatabase(t)
	var logs []*activity.Log
	for range 2 {
		dir := t.TempDir()
		db := openPostgres(t, address, dir)
		l, err := activity.Open(activity.Options{Dir: filepath.Join(dir, "spool"), KeyFile: filepath.Join(dir, "activity_key")}, db)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close(context.Background()) })
		addCalls(t, l, records-1) // the record of the key is included
		if _, err := l.List(t.Context(), activity.Filter{Limit: 1}); err != nil {
			t.Fatal(err)
		}
		logs = append(logs, l)
	}
	query := func(format string, args ...any) {
		t.Helper()
		if out, err := server.QueryIn(pgtest.DatabaseName(address), "SET search_path = mcpproxy; "+fmt.Sprintf(format, args...)); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	const exchange = `UPDATE activity a SET %[3]s FROM activity b
		WHERE (a.instance, a.key, b.instance, b.key) IN ((1, %[1]d, 2, %[2]d), (2, %[2]d, 1, %[1]d))`
	const whole = "seq = b.seq, end_seq = b.end_seq, hash = b.hash, end_hash = b.end_hash, entry = b.entry, outcome = b.outcome"
	seed := volume.Seed(t, 1)
	random := rand.New(rand.NewPCG(seed, 1))
	kinds := map[string]int{}
	for i := range n {
		one, other, from := random.IntN(records), random.IntN(records), 1+random.IntN(2)
		var kind, do, undo string
		switch random.IntN(7) {
		case 0:
			kind, do = "swap records", fmt.Sprintf(exchange, one, other, whole)
			undo = do
		case 1:
			kind, do = "swap entries", fmt.Sprintf(exchange, one, other, "hash = b.hash, entry = b.entry")
			undo = do
		case 2:
			kind, do = "swap outcomes", fmt.Sprintf(exchange, 1+one%(records-1), 1+other%(records-1), "end_hash = b.end_hash, outcome = b.outcome")
			undo = do
		case 3:
			kind = "move to the other"
			do = fmt.Sprintf("UPDATE activity SET instance = %d, key = %d WHERE instance = %d AND key = %d", 3-from, records, from, one)
			undo = fmt.Sprintf("UPDATE activity SET instance = %d, key = %d WHERE instance = %d AND key = %d", from, one, 3-from, records)
		case 4:
			kind = "copy to the other"
			do = fmt.Sprintf(`INSERT INTO activity SELECT (jsonb_populate_record(a, jsonb_build_object('instance', %d, 'key', %d))).* FROM activity a WHERE instance = %d AND key = %d`, 3-from, records, from, one)
			undo = fmt.Sprintf("DELETE FROM activity WHERE instance = %d AND key = %d", 3-from, records)
		case 5:
			kind = "swap the ends"
			do = "UPDATE instance a SET seq = b.seq, hash = b.hash, chain = b.chain FROM instance b WHERE a.id <> b.id"
			undo = do
		default:
			kind = "flip"
			do = fmt.Sprintf("UPDATE activity SET entry = set_bit(entry, bit, 1 - get_bit(entry, bit)) FROM (SELECT %d %% (8 * octet_length(entry)) AS bit FROM activity WHERE instance = %d AND key = %d) f WHERE instance = %[2]d AND key = %[3]d",
				random.IntN(1<<20), from, one)
			undo = do
		}
		kinds[kind]++
		query("%s", do)
		for j, l := range logs {
			v, err := l.Verify(t.Context())
			if err != nil || v.OK || v.FirstBreak == nil || v.FirstBreak.Seq == 0 || v.FirstBreak.Reason == "" {
				t.Fatalf("seed %d, mutation %d (%s) was not detected by instance %d: %+v, %v", seed, i, kind, j, v, err)
			}
		}
		if query("%s", undo); i%25 == 0 || i == n-1 {
			for _, l := range logs {
				if v, err := l.Verify(t.Context()); err != nil || !v.OK || v.Records != 2*records {
					t.Fatalf("seed %d, after mutation %d (%s) was undone: %+v, %v, %v", seed, i, kind, v, v.FirstBreak, err)
				}
			}
		}
	}
	t.Logf("seed %d: %v", seed, kinds)
}

// TestPostgresSpoolIsFull stops the server until the spool is full. Calls must then be refused with the right error
// code, and none may be recorded. When the server is running again, every record must exist exactly once.
func TestPostgresSpoolIsFull(t *testing.T) {
	volume.SkipUnderRace(t)
	t.Parallel()
	server := pgtest.StartServer(t)
	dir := t.TempDir()
	db := openPostgres(t, server.CreateDatabase(t), dir)
	l, err := activity.Open(activity.Options{Dir: filepath.Join(dir, "spool"), MaxSpool: 100 << 20}, db) // three files
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close(context.Background())
	taken := map[string]bool{}
	call := func() error {
		r := activity.Record{Type: activity.ToolCall, ToolName: "t", Arguments: []byte(`"` + strings.Repeat("words ", 10_000) + `"`)}
		if err := l.Begin(&r); err != nil {
			return err
		}
		taken[r.ID] = true
		return l.End(r.ID, activity.Outcome{Status: activity.Success})
	}
	if err := call(); err != nil {
		t.Fatal(err)
	}
	if _, err := l.List(t.Context(), activity.Filter{Limit: 1}); err != nil {
		t.Fatal(err)
	}
	server.Kill()
	refused := 0
	for refused < 20 && len(taken) < 5000 {
		if err := call(); err != nil {
			if p, ok := errors.AsType[*problem.Problem](err); !ok || p.Code != problem.AuditUnavailable {
				t.Fatalf("the call was refused with %v", err)
			}
			refused++
		}
	}
	if health := l.Health(); refused < 20 || !health.Degraded || len(taken) < 100 {
		t.Errorf("%d calls were accepted and %d refused: %+v", len(taken), refused, health)
	}
	if err := server.StartProcess(); err != nil {
		t.Fatal(err)
	}
	var found []activity.Record
	for until := time.Now().Add(store.Patience); len(found) < len(taken); time.Sleep(100 * time.Millisecond) {
		found = nil
		for f := (activity.Filter{Types: []activity.Type{activity.ToolCall}, Limit: 1000}); ; {
			p, err := l.List(t.Context(), f)
			if err != nil {
				break
			}
			found = append(found, p.Records...)
			if f.Cursor = p.NextCursor; f.Cursor == "" {
				break
			}
		}
		if time.Now().After(until) && len(found) < len(taken) {
			t.Fatalf("got %d of %d records", len(found), len(taken))
		}
	}
	for _, r := range found {
		if !taken[r.ID] || r.Status != activity.Success {
			t.Errorf("record %s with status %s was not accepted, or exists twice", r.ID, r.Status)
		}
		delete(taken, r.ID)
	}
	for until := time.Now().Add(store.Patience); call() != nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("calls are still refused")
		}
	}
}

// TestPostgresRetention checks that the limit of records applies to all instances together, that their logs verify
// after pruning, and that the records of a removed instance are deleted.
func TestPostgresRetention(t *testing.T) {
	volume.SkipUnderRace(t)
	t.Parallel()
	server := pgtest.SharedServer(t)
	address := server.CreateDatabase(t)
	var stores []*store.Postgres
	var logs []*activity.Log
	for _, records := range []int{3000, 1000} {
		dir := t.TempDir()
		db := openPostgres(t, address, dir)
		l, err := activity.Open(activity.Options{Dir: filepath.Join(dir, "spool")}, db)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close(context.Background()) })
		addCalls(t, l, records)
		if _, err := l.List(t.Context(), activity.Filter{Limit: 1}); err != nil {
			t.Fatal(err)
		}
		stores, logs = append(stores, db), append(logs, l)
	}
	tidy := func(db *store.Postgres, keep activity.Retention) {
		t.Helper()
		for more := true; more; {
			var err error
			if more, err = db.Tidy(t.Context(), time.Now(), keep, true); err != nil {
				t.Fatal(err)
			}
		}
	}
	counts := func() string {
		t.Helper()
		out, err := server.QueryIn(pgtest.DatabaseName(address), "SELECT string_agg(n::text, ' ' ORDER BY instance) FROM (SELECT instance, count(*) AS n FROM mcpproxy.activity GROUP BY 1) a")
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return out
	}
	for _, db := range stores {
		tidy(db, activity.Retention{MaxRecords: 2000})
	}
	var left [2]int
	if _, err := fmt.Sscan(counts(), &left[0], &left[1]); err != nil {
		t.Fatal(err)
	}
	if all := left[0] + left[1]; all > 2000 || all < 1900 || min(left[0], left[1]) < 500 {
		t.Errorf("%v records remain of 3,000 and 1,000", left)
	}
	for _, l := range logs {
		if v, err := l.Verify(t.Context()); err != nil || !v.OK || v.Records != int64(left[0]+left[1]) {
			t.Errorf("%+v, %v, %v", v, v.FirstBreak, err)
		}
	}
	if out, err := server.QueryIn(pgtest.DatabaseName(address), "UPDATE mcpproxy.instance SET seen = now() - interval '92 days' WHERE id = 2"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	tidy(stores[0], activity.Retention{Days: 90})
	if counts() != fmt.Sprint(left[0]) {
		t.Errorf("record counts after removing an instance: %s", counts())
	}
}
