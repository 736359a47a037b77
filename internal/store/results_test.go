package store

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/testutil/volume"
)

// TestResultsAreEncryptedInTheFile searches for the body and the handle in all files that SQLite writes.
func TestResultsAreEncryptedInTheFile(t *testing.T) {
	t.Parallel()
	_, db, e := openLogWithRecords(t, 1)
	secret := strings.Repeat("password=hunter2 ", 20_000)
	r := StoredResult{Handle: "HANDLEHANDLEHANDLE", Actor: "agent", Body: []byte(`"` + secret + `"`), Expires: time.Now().Add(time.Hour)}
	for range 2 { // a handle may be used again
		if err := db.PutResult(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	for _, suffix := range []string{"", "-wal"} {
		data, err := os.ReadFile(e.path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(data, []byte("hunter2")) || bytes.Contains(data, []byte(r.Handle)) {
			t.Errorf("the file%s contains the result or its handle", suffix)
		}
	}
	got, err := db.GetResult(t.Context(), r.Handle)
	if err != nil || !bytes.Equal(got.Body, r.Body) {
		t.Errorf("got %d bytes, %v", len(got.Body), err)
	}
	err = db.writeTx(t.Context(), func(c *sqliteWriteConn) error {
		return c.exec("UPDATE result SET body = substr(body, 1, 1000) || CASE substr(body, 1001, 1) WHEN x'00' THEN x'01' ELSE x'00' END || substr(body, 1002)")
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := db.GetResult(t.Context(), r.Handle); err == nil {
		t.Errorf("a changed result gave %d bytes", len(got.Body))
	}
}

// TestTheOldestResultsMakeRoom stores results until the space is used up.
func TestTheOldestResultsMakeRoom(t *testing.T) {
	t.Parallel()
	_, db, e := openLogWithRecords(t, 1)
	const size, room = 10_000, 55_000
	put := func(i int) {
		t.Helper()
		r := StoredResult{Handle: fmt.Sprint(i), Body: bytes.Repeat([]byte("1"), size), Expires: time.Now().Add(time.Hour)}
		if err := db.PutResult(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 8 {
		put(i)
	}
	err := db.writeTx(t.Context(), func(c *sqliteWriteConn) error {
		evictResults(c, resultIDOfHandle("6"), room-size)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	put(6)
	if n := e.countRows(t, "SELECT sum(length(body)) FROM result"); n > room {
		t.Errorf("the results use %d bytes", n)
	}
	for i := range 8 {
		_, err := db.GetResult(t.Context(), fmt.Sprint(i))
		var p *problem.Problem
		gone := errors.As(err, &p) && p.Code == problem.NotFound
		if gone != (i < 3) || !gone && err != nil {
			t.Errorf("result %d: %v", i, err)
		}
	}
}

// TestResultsInTheClearAreOverwritten opens a database of the first version, which stored results unencrypted.
func TestResultsInTheClearAreOverwritten(t *testing.T) {
	volume.SkipUnderRace(t)
	t.Parallel()
	path := filepath.Join(t.TempDir(), "mcpproxy.db")
	inTheClear := func() bool {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Contains(data, []byte("hunter2"))
	}
	use := func(queries ...string) {
		t.Helper()
		db := OpenSQLite(path, nil)
		e, err := db.waitOpen(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range queries {
			if err := e.writeConn.exec(q); err != nil {
				t.Fatal(err)
			}
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	use("ALTER TABLE result DROP COLUMN tool", "INSERT INTO result (handle, actor, expires, body) VALUES ('h', '', 1, CAST(replace(hex(zeroblob(9000)), '00', 'hunter2 ') AS BLOB))",
		"ALTER TABLE result DROP COLUMN server", "DROP TABLE held", "DROP TABLE approval", "DROP TABLE launch", "DROP TABLE proposal", "DROP TABLE approval_origin",
		"ALTER TABLE activity_chunk DROP COLUMN gone", "ALTER TABLE activity_chunk DROP COLUMN refused_bytes",
		"DROP INDEX activity_gap_first", "ALTER TABLE activity_gap DROP COLUMN first",
		"DROP TABLE token", "DROP TABLE activity_took", "ALTER TABLE activity_hour DROP COLUMN last",
		"DROP TABLE activity_signed", "DROP TABLE activity_erasing", "ALTER TABLE activity_position DROP COLUMN signer",
		"ALTER TABLE activity_checkpoint DROP COLUMN chain", "ALTER TABLE activity_checkpoint DROP COLUMN key", "ALTER TABLE activity_checkpoint DROP COLUMN signature",
		"DROP TABLE learned_session", "DROP TABLE session_key", "DROP TABLE ended_session", "DROP TABLE lease", "DROP TABLE question", "DROP TABLE presence_statement", "DROP TABLE presence_anchor",
		"DELETE FROM goose_db_version WHERE version_id >= 2")
	if !inTheClear() {
		t.Fatal("the test database has no unencrypted result")
	}
	use()
	if inTheClear() {
		t.Error("the file still contains the unencrypted result")
	}
}

// TestResultsExpireByElapsedTime sets the clock while results are stored. They must not expire early or late. After a
// restart, they must not expire later than allowed.
func TestResultsExpireByElapsedTime(t *testing.T) {
	t.Parallel()
	const year = 365 * 24 * time.Hour
	_, db, e := openLogWithRecords(t, 1)
	set := time.Duration(0)
	db.clock.now = func() time.Time { return time.Now().Add(set).Round(0) }
	put := func(handle string, life time.Duration) {
		t.Helper()
		if err := db.PutResult(t.Context(), StoredResult{Handle: handle, Body: []byte("1"), Expires: db.clock.now().Add(life)}); err != nil {
			t.Fatal(err)
		}
	}
	put("before", time.Hour)
	for _, set = range []time.Duration{year, -year, 3 * time.Hour, -3 * time.Hour} {
		handle := fmt.Sprint(set)
		put(handle, time.Hour)
		put("short of "+handle, -time.Second)
		if _, err := db.Tidy(t.Context(), db.clock.now(), activity.Retention{}, true); err != nil {
			t.Fatal(err)
		}
		for _, handle := range []string{"before", handle} {
			if _, err := db.GetResult(t.Context(), handle); err != nil {
				t.Errorf("the clock was set by %v: %s: %v", set, handle, err)
			}
		}
		if _, err := db.GetResult(t.Context(), "short of "+handle); err == nil {
			t.Errorf("the clock was set by %v: an expired result is still returned", set)
		}
	}
	put("an hour", time.Hour)
	if err := db.writeTx(t.Context(), func(c *sqliteWriteConn) error {
		return c.exec("UPDATE result SET expires = expires + ?", year.Microseconds())
	}); err != nil {
		t.Fatal(err)
	}
	if err := e.capResultExpiry(); err != nil {
		t.Fatal(err)
	}
	if r, err := db.GetResult(t.Context(), "an hour"); err != nil || time.Until(r.Expires) > ResultLife+time.Minute {
		t.Errorf("the result expires at %v, %v", r.Expires, err)
	}
}
