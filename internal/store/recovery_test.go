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

// damageError returns the error that SQLite reports for a file that is not a database.
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
		t.Fatalf("SQLite reported %v for a file of junk", err)
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

// waitForApprovals waits until the approvals are readable, and returns them.
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

// TestHealthyFileStaysInUse simulates repeated damage reports of SQLite for a healthy file, as they occur when the disk
// fails for a moment. The file must stay in use.
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
			t.Error("SaveApprovals succeeded while the file is suspected to be damaged")
		}
		if s := waitForApprovals(t, db); s.Lost || len(s.Tools["s"]) != 1 {
			t.Fatalf("approvals after the check: %+v", s)
		}
		select {
		case <-db.ReopenSignal(): // sent after the new state is set
		case <-time.After(time.Minute):
			t.Fatal("ReopenSignal did not report that the database was opened again")
		}
	}
	if all := filesPutAside(t, db); len(all) > 0 {
		t.Errorf("renamed files: %q", all)
	}
}

// TestImpossibleRowsAreDamage checks that a readable file that always has invalid rows is finally renamed. Otherwise it
// would be checked forever.
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
			t.Fatal("the file was renamed too early")
		}
		_ = db.blockWritesOnDamage(e, errDamaged) // returns errDamaged
	}
	if s := waitForApprovals(t, db); !s.Lost || len(filesPutAside(t, db)) == 0 {
		t.Errorf("the file is still in use: %+v", s)
	}
}

// TestOnlyConsecutiveChecksCount checks that the count of failed checks restarts if the disk fails between the checks.
func TestOnlyConsecutiveChecksCount(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "mcpproxy.db")
	if err := os.WriteFile(path, []byte(strings.Repeat("junk", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	db := &SQLite{path: path, commonStore: commonStore{clock: steadyClock{now: time.Now}}, openState: newOpenState[sqliteEngine](), reopened: make(chan struct{}, 1)}
	var x damageExamination
	const last = 2*maxDamagedChecks - 2 // the disk fails at the second to last of the first five checks
	for i := range last + 1 {
		_, err := db.openAndCheck(t.Context(), &x)
		if i == maxDamagedChecks-2 {
			err = errors.New("the disk fails")
		}
		if damaged := x.countDamage(err); damaged != (i == last) {
			t.Errorf("check %d: %v, damaged = %v", i, err, damaged)
		}
	}
}
