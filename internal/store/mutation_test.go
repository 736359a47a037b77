package store_test

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/testutil/volume"
)

// Columns of the rows of a record and of a signed checkpoint.
const (
	columnsOfRecord = "key, seq, end_seq, hash, end_hash, entry, outcome"
	columnsOfPlace  = "chain, seq, hash, time, key, signature"
)

type rawRow []any

func readRawRows(t *testing.T, db *sql.DB, query string, args ...any) (out []rawRow) {
	t.Helper()
	rows, err := db.Query(query, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		row := make(rawRow, len(names))
		to := make([]any, len(names))
		for i := range row {
			to[i] = &row[i]
		}
		if err := rows.Scan(to...); err != nil {
			t.Fatal(err)
		}
		out = append(out, row)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

func execSQL(t *testing.T, db *sql.DB, query string, args ...any) {
	t.Helper()
	if _, err := db.Exec(query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

func insertRawRow(t *testing.T, db *sql.DB, table, columns string, row rawRow) {
	t.Helper()
	execSQL(t, db, fmt.Sprintf("INSERT OR REPLACE INTO %s (%s) VALUES (?%s)", table, columns, strings.Repeat(", ?", len(row)-1)), row...)
}

// mutator changes a database at random and can undo each change.
type mutator struct {
	t       *testing.T
	random  *rand.Rand
	db      *sql.DB
	records int
	theirs  []rawRow // rows of another instance
}

// mutate makes a random change. It returns the kind of the change, and a function that undoes it.
func (m *mutator) mutate() (kind string, back func()) {
	key := func() int { return m.random.IntN(m.records) }
	record := func(key int) rawRow {
		return readRawRows(m.t, m.db, "SELECT "+columnsOfRecord+" FROM activity WHERE key = ?", key)[0]
	}
	put := func(row rawRow) { insertRawRow(m.t, m.db, "activity", columnsOfRecord, row) }
	a := record(key())
	back = func() { put(a) }
	switch m.random.IntN(8) {
	case 0, 1:
		changed := append(rawRow{}, a...)
		for {
			i := 3 + m.random.IntN(4)
			if b, ok := changed[i].([]byte); ok && len(b) > 0 {
				b = append([]byte{}, b...)
				b[m.random.IntN(len(b))] ^= 1 << m.random.IntN(8)
				changed[i] = b
				break
			}
		}
		put(changed)
		return "flip", back
	case 2:
		execSQL(m.t, m.db, "DELETE FROM activity WHERE key = ?", a[0])
		return "delete", back
	case 3:
		b := record(key())
		for b[0] == a[0] {
			b = record(key())
		}
		put(append(rawRow{a[0]}, b[1:]...))
		put(append(rawRow{b[0]}, a[1:]...))
		return "reorder", func() { put(a); put(b) }
	case 4:
		put(append(rawRow{int64(m.records)}, a[1:]...))
		return "insert", func() { execSQL(m.t, m.db, "DELETE FROM activity WHERE key = ?", m.records) }
	case 5:
		from := m.records - 1 - m.random.IntN(50)
		gone := readRawRows(m.t, m.db, "SELECT "+columnsOfRecord+" FROM activity WHERE key >= ?", from)
		at := readRawRows(m.t, m.db, "SELECT seq, hash FROM activity_position")[0]
		execSQL(m.t, m.db, "DELETE FROM activity WHERE key >= ?", from)
		execSQL(m.t, m.db, `UPDATE activity_position SET (seq, hash) = (SELECT n, h FROM (SELECT seq AS n, hash AS h FROM activity WHERE key > ?1
			UNION ALL SELECT end_seq, end_hash FROM activity WHERE end_hash IS NOT NULL AND key > ?1) ORDER BY n DESC LIMIT 1)`, from-50)
		return "truncate", func() {
			for _, row := range gone {
				put(row)
			}
			execSQL(m.t, m.db, "UPDATE activity_position SET seq = ?, hash = ?", at...)
		}
	case 6:
		other := m.theirs[m.random.IntN(len(m.theirs))]
		put(append(rawRow{a[0]}, other[1:]...))
		return "swap", back
	}
	places := readRawRows(m.t, m.db, "SELECT "+columnsOfPlace+" FROM activity_signed WHERE seq % 4096 = 0")
	p := places[m.random.IntN(len(places))]
	back = func() { insertRawRow(m.t, m.db, "activity_signed", columnsOfPlace, p) }
	if m.random.IntN(3) == 0 {
		execSQL(m.t, m.db, "DELETE FROM activity_signed WHERE seq = ?", p[1])
		return "delete a signature", back
	}
	changed := append(rawRow{}, p...)
	i := []int{2, 4, 5}[m.random.IntN(3)]
	b := append([]byte{}, changed[i].([]byte)...)
	b[m.random.IntN(len(b))] ^= 1 << m.random.IntN(8)
	changed[i] = b
	insertRawRow(m.t, m.db, "activity_signed", columnsOfPlace, changed)
	return "flip in a signature", back
}

// TestMutationsOfTheLog changes a log of 10,000 records at random, in the database and in the spool. Verify must detect
// every change. MCPPROXY_MUTATIONS sets the number of changes.
func TestMutationsOfTheLog(t *testing.T) {
	volume.SkipUnderRace(t)
	t.Parallel()
	records, n := volume.FullOrQuick(10_000, 2500), volume.FullOrQuick(30, 16)
	if set, err := strconv.Atoi(os.Getenv("MCPPROXY_MUTATIONS")); err == nil {
		n = set
	}
	dir, theirs := t.TempDir(), t.TempDir()
	l, db := openSigningLog(t, dir)
	defer closeLogAndDB(t, l, db)
	for range 4 {
		for _, f := range secretFields[:3] {
			if _, err := l.EraseFields(t.Context(), activity.Record{Actor: "admin"}, secretCall(t, l, "x").ID, []activity.ErasableField{f}); err != nil {
				t.Fatal(err)
			}
		}
	}
	addCalls(t, l, records-25) // the record of the key is included
	l2, db2 := openSigningLog(t, theirs)
	addCalls(t, l2, 500)
	closeLogAndDB(t, l2, db2)
	checkVerified(t, l)
	m := &mutator{t: t, db: openSQL(t, filepath.Join(dir, "mcpproxy.db"))}
	m.db.SetMaxOpenConns(1)
	execSQL(t, m.db, "PRAGMA busy_timeout = 20000") // the log writes its text index at the same time
	if err := m.db.QueryRow("SELECT count(*) FROM activity").Scan(&m.records); err != nil || m.records != records {
		t.Fatalf("got %d records, %v", m.records, err)
	}
	m.theirs = readRawRows(t, openSQL(t, filepath.Join(theirs, "mcpproxy.db")), "SELECT "+columnsOfRecord+" FROM activity")
	seed := volume.Seed(t, 1)
	m.random = rand.New(rand.NewPCG(seed, 1))
	spool, err := os.OpenFile(filepath.Join(dir, "spool", fmt.Sprintf("%020d.spool", 1)), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer spool.Close()
	data, err := os.ReadFile(spool.Name())
	if err != nil {
		t.Fatal(err)
	}
	size := len(strings.TrimRight(string(data), "\x00"))
	kinds := map[string]int{}
	for i := range n {
		var kind string
		var back func()
		if i%8 == 7 { // change a byte of the spool
			at := m.random.IntN(size)
			if _, err := spool.WriteAt([]byte{data[at] ^ 1<<m.random.IntN(8)}, int64(at)); err != nil {
				t.Fatal(err)
			}
			kind, back = "flip in the spool", func() {
				if _, err := spool.WriteAt(data[at:at+1], int64(at)); err != nil {
					t.Fatal(err)
				}
			}
		} else {
			kind, back = m.mutate()
		}
		kinds[kind]++
		v, err := l.Verify(t.Context())
		if err != nil || v.OK || v.FirstBreak == nil || v.FirstBreak.Seq == 0 || v.FirstBreak.Reason == "" {
			t.Fatalf("seed %d, mutation %d (%s) was not detected: %+v, %v", seed, i, kind, v, err)
		}
		if back(); i%50 == 0 {
			checkVerified(t, l)
		}
	}
	checkVerified(t, l)
	t.Logf("seed %d: %v", seed, kinds)
}
