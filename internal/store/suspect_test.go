package store

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/approval"
)

// damageError is what SQLite says of a file that is no database.
func damageError(t *testing.T) error {
	t.Helper()
	path := filepath.Join(t.TempDir(), "junk")
	if err := os.WriteFile(path, []byte(strings.Repeat("junk", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := connect(path, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err = db.Exec("CREATE TABLE x (y)"); !isCorrupt(err) {
		t.Fatalf("SQLite says %v of junk", err)
	}
	return err
}

func asides(t *testing.T, db *DB) []string {
	t.Helper()
	all, err := filepath.Glob(db.path + ".corrupt-*")
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// saved waits until the approvals can be read.
func saved(t *testing.T, db *DB) approval.StoredDecisions {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(Patience); ; <-tick.C {
		s, err := db.LoadApprovals(t.Context())
		if err == nil {
			return s
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

var aPin = approval.ChangeSet{Server: "s", Tools: []approval.StoredRow{{Tool: "t", ItemDecisions: approval.ItemDecisions{
	Pin: &approval.Pin{Fingerprint: tool.Fingerprint{1}, DecisionMark: approval.DecisionMark{By: "admin"}}}}}}

// SQLite says of a healthy file that it is damaged, as it does when the disk
// fails for a moment. However often that happens, the file is gone on with.
func TestAHealthyFileIsNeverPutAside(t *testing.T) {
	t.Parallel()
	db := OpenImpatient(filepath.Join(t.TempDir(), "mcpproxy.db"))
	defer db.Close()
	if err := db.SaveApprovals(t.Context(), aPin); err != nil {
		t.Fatal(err)
	}
	said := damageError(t)
	for range 8 {
		e, err := db.use(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := db.failed(e, said); !errors.Is(err, said) {
			t.Fatal(err)
		}
		if err := db.SaveApprovals(t.Context(), aPin); err == nil {
			t.Error("something is stored in a file under suspicion")
		}
		if s := saved(t, db); s.Lost || len(s.Tools["s"]) != 1 {
			t.Fatalf("afterwards: %+v", s)
		}
		select {
		case <-db.Reopened():
		default:
			t.Error("it was not told that the database was opened again")
		}
	}
	if all := asides(t, db); len(all) > 0 {
		t.Errorf("put aside: %q", all)
	}
}

// A file that can be read, but whose rows are never right, is put aside in the
// end: otherwise it would be checked for ever.
func TestRowsThatAreNeverRightAreDamage(t *testing.T) {
	t.Parallel()
	db := OpenImpatient(filepath.Join(t.TempDir(), "mcpproxy.db"))
	defer db.Close()
	for range maxWrong {
		saved(t, db)
		e, err := db.use(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(asides(t, db)) > 0 {
			t.Fatal("it was put aside too early")
		}
		_ = db.failed(e, errDamaged) // which it returns
	}
	if s := saved(t, db); !s.Lost || len(asides(t, db)) == 0 {
		t.Errorf("it is gone on with: %+v", s)
	}
}

// A disk that fails between the looks proves nothing about the file.
func TestOnlyLooksInARowCount(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "mcpproxy.db")
	if err := os.WriteFile(path, []byte(strings.Repeat("junk", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	db := &DB{path: path, clock: clock{now: time.Now}, opened: notOpened[engine](), reopened: make(chan struct{}, 1)}
	var x examination
	const last = 2*maxLooks - 2 // the disk fails at the last but one of the first five
	for i := range last + 1 {
		_, err := db.look(t.Context(), &x)
		if i == maxLooks-2 {
			err = errors.New("the disk fails")
		}
		if damaged := x.found(err); damaged != (i == last) {
			t.Errorf("look %d: %v, damaged: %v", i, err, damaged)
		}
	}
}
