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
)

// TestResultsAreEncryptedInTheFile looks for the body and the handle in
// everything that SQLite writes.
func TestResultsAreEncryptedInTheFile(t *testing.T) {
	_, db, e := logOver(t, 1)
	secret := strings.Repeat("password=hunter2 ", 20_000)
	r := StoredResult{Handle: "HANDLEHANDLEHANDLE", Actor: "agent", Body: []byte(`"` + secret + `"`), Expires: time.Now().Add(time.Hour)}
	for range 2 { // a handle may come again
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
			t.Errorf("the file%s tells the result or its handle", suffix)
		}
	}
	got, err := db.GetResult(t.Context(), r.Handle)
	if err != nil || !bytes.Equal(got.Body, r.Body) {
		t.Errorf("%d bytes, %v", len(got.Body), err)
	}
	err = db.write(t.Context(), func(c *rawConn) error {
		return c.exec("UPDATE result SET body = substr(body, 1, 1000) || x'00' || substr(body, 1002)")
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := db.GetResult(t.Context(), r.Handle); err == nil {
		t.Errorf("a changed result gave %d bytes", len(got.Body))
	}
}

// TestTheOldestResultsMakeRoom keeps results until there is no room for more.
func TestTheOldestResultsMakeRoom(t *testing.T) {
	_, db, e := logOver(t, 1)
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
	err := db.write(t.Context(), func(c *rawConn) error { return makeRoom(t.Context(), c, resultID("6"), room-size) })
	if err != nil {
		t.Fatal(err)
	}
	put(6)
	if n := e.count(t, "SELECT sum(length(body)) FROM result"); n > room {
		t.Errorf("%d bytes", n)
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

// TestResultsInTheClearAreOverwritten has a database of the first version.
func TestResultsInTheClearAreOverwritten(t *testing.T) {
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
		db := Open(path, nil)
		e, err := db.use(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range queries {
			if err := e.conn.exec(q); err != nil {
				t.Fatal(err)
			}
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	use("INSERT INTO result (handle, actor, expires, body) VALUES ('h', '', 1, CAST(replace(hex(zeroblob(9000)), '00', 'hunter2 ') AS BLOB))",
		"ALTER TABLE result DROP COLUMN server", "DROP TABLE approval", "DROP TABLE launch", "DROP TABLE proposal", "DROP TABLE approval_origin",
		"DELETE FROM goose_db_version WHERE version_id >= 2")
	if !inTheClear() {
		t.Fatal("the test has no result in the clear")
	}
	use()
	if inTheClear() {
		t.Error("the file still has it")
	}
}
