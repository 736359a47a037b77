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

// damageError returns the error of SQLite for a file that is no database.
func damageError(t *testing.T) error {
	t.Helper()
	path := filepath.Join(t.TempDir(), "junk")
	if err := os.WriteFile(path, []byte(strings.Repeat("junk", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := openPool(path, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err = db.Exec("CREATE TABLE x (y)"); !isCorruptionError(err) {
		t.Fatalf("SQLite says %v of junk", err)
	}
	return err
}

func filesPutAside(t *testing.T, db *SQLite) []string {
	t.Helper()
	all, err := filepath.Glob(db.path + ".corrupt-*")
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// waitForApprovals waits until the approvals can be read, and returns them.
func waitForApprovals(t *testing.T, db *SQLite) approval.StoredDecisions {
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

var aPin = approval.ChangeSet{Server: "s", Tools: []approval.DecisionRow{{Tool: "t", DefinitionDecisions: approval.DefinitionDecisions{
	Pin: &approval.Pin{Fingerprint: tool.Fingerprint{1}, AuthorAndTime: approval.AuthorAndTime{By: "admin"}}}}}}

// TestHealthyFileStaysInUse: SQLite reports damage of a healthy file, as it does when the disk fails for a moment. However
// often that happens, the file stays in use.
func TestHealthyFileStaysInUse(t *testing.T) {
	t.Parallel()
	db := OpenWithShortPauses(filepath.Join(t.TempDir(), "mcpproxy.db"))
	defer db.Close()
	if err := db.SaveApprovals(t.Context(), aPin); err != nil {
		t.Fatal(err)
	}
	said := damageError(t)
	for range 8 {
		e, err := db.waitOpen(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := db.blockWritesOnDamage(e, said); !errors.Is(err, said) {
			t.Fatal(err)
		}
		if err := db.SaveApprovals(t.Context(), aPin); err == nil {
			t.Error("something is stored in a file under suspicion")
		}
		if s := waitForApprovals(t, db); s.Lost || len(s.Tools["s"]) != 1 {
			t.Fatalf("afterwards: %+v", s)
		}
		select {
		case <-db.ReopenSignal(): // it comes after the new state
		case <-time.After(time.Minute):
			t.Fatal("it was not told that the database was opened again")
		}
	}
	if all := filesPutAside(t, db); len(all) > 0 {
		t.Errorf("put aside: %q", all)
	}
}

// TestImpossibleRowsAreDamage: a readable file whose rows are always impossible is moved away in the end. Otherwise it would
// be checked forever.
func TestImpossibleRowsAreDamage(t *testing.T) {
	t.Parallel()
	db := OpenWithShortPauses(filepath.Join(t.TempDir(), "mcpproxy.db"))
	defer db.Close()
	for range maxDamagedRowErrors {
		waitForApprovals(t, db)
		e, err := db.waitOpen(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(filesPutAside(t, db)) > 0 {
			t.Fatal("it was put aside too early")
		}
		_ = db.blockWritesOnDamage(e, errDamaged) // returns errDamaged
	}
	if s := waitForApprovals(t, db); !s.Lost || len(filesPutAside(t, db)) == 0 {
		t.Errorf("it is gone on with: %+v", s)
	}
}

// TestOnlyConsecutiveChecksCount: a disk that fails between the checks proves nothing about the file.
func TestOnlyConsecutiveChecksCount(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "mcpproxy.db")
	if err := os.WriteFile(path, []byte(strings.Repeat("junk", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	db := &SQLite{path: path, commonStore: commonStore{clock: steadyClock{now: time.Now}}, openState: newOpenState[sqliteEngine](), reopened: make(chan struct{}, 1)}
	var x damageExamination
	const last = 2*maxDamagedChecks - 2 // the disk fails at the last but one of the first five checks
	for i := range last + 1 {
		_, err := db.openAndCheck(t.Context(), &x)
		if i == maxDamagedChecks-2 {
			err = errors.New("the disk fails")
		}
		if damaged := x.countDamage(err); damaged != (i == last) {
			t.Errorf("look %d: %v, damaged: %v", i, err, damaged)
		}
	}
}
