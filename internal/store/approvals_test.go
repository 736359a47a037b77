package store_test

import (
	"database/sql"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/store"
	"mcpproxy/internal/testutil/volume"
)

// TestALostDatabaseIsNotForgotten checks that a database that replaces a lost one with approvals reports the loss, so
// that its tools do not count as new.
func TestALostDatabaseIsNotForgotten(t *testing.T) {
	t.Parallel()
	pinned := approval.ChangeSet{Server: "s", Tools: []approval.DecisionRow{{Tool: "t", DefinitionDecisions: approval.DefinitionDecisions{
		Pin: &approval.Pin{Fingerprint: tool.Fingerprint{1}, AuthorAndTime: approval.AuthorAndTime{By: "admin", At: time.Now()}}}}}}
	for name, c := range map[string]struct {
		ruin func(t *testing.T, path string) error
		lost bool
	}{
		"untouched": {func(*testing.T, string) error { return nil }, false},
		"removed":   {func(_ *testing.T, path string) error { return os.Remove(path) }, true},
		"truncated": {func(_ *testing.T, path string) error { return os.Truncate(path, 0) }, true},
		"overwritten": {func(_ *testing.T, path string) error {
			return os.WriteFile(path, []byte("not a database at all"), 0o600)
		}, true},
		"a fingerprint cut short": {func(t *testing.T, path string) error {
			_, err := openSQL(t, path).Exec("UPDATE approval SET approved = x'01'")
			return err
		}, true},
		"its origin gone": {func(t *testing.T, path string) error {
			_, err := openSQL(t, path).Exec("DELETE FROM approval_origin; DELETE FROM approval")
			return err
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "mcpproxy.db")
			db := store.OpenSQLite(path, nil)
			saved, err := db.LoadApprovals(t.Context())
			if err != nil || saved.Lost {
				t.Fatalf("the first database: %+v, %v", saved, err)
			}
			if err := db.SaveApprovals(t.Context(), pinned); err != nil {
				t.Fatal(err)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			if err := c.ruin(t, path); err != nil {
				t.Fatal(err)
			}
			db = store.OpenWithShortPauses(path)
			defer func() { _ = db.Close() }()
			tick := time.NewTicker(20 * time.Millisecond)
			defer tick.Stop()
			for deadline := time.Now().Add(store.Patience); ; <-tick.C { // until the file was checked often enough
				if saved, err = db.LoadApprovals(t.Context()); err == nil || time.Now().After(deadline) {
					break
				}
			}
			if err != nil || saved.Lost != c.lost || (len(saved.Tools) == 0) != c.lost {
				t.Errorf("after opening it again: %+v, %v", saved, err)
			}
		})
	}
}

// TestAnOlderDatabaseHasLostNothing checks that a database of a version without approvals is migrated and does not
// count as a replacement.
func TestAnOlderDatabaseHasLostNothing(t *testing.T) {
	volume.SkipUnderRace(t)
	t.Parallel()
	path := filepath.Join(t.TempDir(), "mcpproxy.db")
	db := store.OpenSQLite(path, nil)
	if err := db.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	old, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := old.Exec(`DROP TABLE held; DROP TABLE approval; DROP TABLE launch; DROP TABLE proposal; DROP TABLE approval_origin;
		ALTER TABLE result DROP COLUMN server;
		ALTER TABLE activity_chunk DROP COLUMN gone; ALTER TABLE activity_chunk DROP COLUMN refused_bytes;
		DROP INDEX activity_gap_first; ALTER TABLE activity_gap DROP COLUMN first;
		DROP TABLE token; ALTER TABLE result DROP COLUMN tool; DROP TABLE activity_took; ALTER TABLE activity_hour DROP COLUMN last;
		DROP TABLE activity_signed; DROP TABLE activity_erasing; ALTER TABLE activity_position DROP COLUMN signer; ALTER TABLE activity_checkpoint DROP COLUMN chain; ALTER TABLE activity_checkpoint DROP COLUMN key; ALTER TABLE activity_checkpoint DROP COLUMN signature;
		DROP TABLE learned_session; DROP TABLE session_key; DROP TABLE ended_session; DROP TABLE lease; DROP TABLE question; DROP TABLE presence_statement; DROP TABLE presence_anchor;
		DELETE FROM goose_db_version WHERE version_id >= 3`); err != nil {
		t.Fatal(err)
	}
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(filepath.Dir(path), "approvals.begun")); err != nil {
		t.Fatal(err)
	}
	db = store.OpenSQLite(path, nil)
	defer func() { _ = db.Close() }()
	if saved, err := db.LoadApprovals(t.Context()); err != nil || saved.Lost {
		t.Errorf("LoadApprovals gave %+v, %v", saved, err)
	}
}

// TestApprovalsGetTheirKind checks that decisions about tools from a version without kinds stay valid.
func TestApprovalsGetTheirKind(t *testing.T) {
	volume.SkipUnderRace(t)
	t.Parallel()
	path := filepath.Join(t.TempDir(), "mcpproxy.db")
	db := store.OpenSQLite(path, nil)
	var f tool.Fingerprint
	f[0] = 7
	id := tool.ID{Server: "s", Tool: "t"}
	at := time.UnixMicro(1_700_000_000_000_000)
	row := approval.DecisionRow{Tool: "t", DefinitionDecisions: approval.DefinitionDecisions{Pin: &approval.Pin{Fingerprint: f, AuthorAndTime: approval.AuthorAndTime{By: "admin", At: at}}, Off: &approval.AuthorAndTime{By: "admin", At: at}},
		Definition: json.RawMessage(`{"name":"t"}`)}
	if err := db.SaveApprovals(t.Context(), approval.ChangeSet{Server: "s", Tools: []approval.DecisionRow{row}}); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	old, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := old.Exec(`CREATE TABLE before (server TEXT NOT NULL, tool TEXT NOT NULL, approved BLOB, hints TEXT, definition BLOB, approved_by TEXT, approved_at INTEGER,
			blocked BLOB, blocked_by TEXT, blocked_at INTEGER, off_by TEXT, off_at INTEGER, PRIMARY KEY (server, tool)) WITHOUT ROWID;
		INSERT INTO before SELECT server, tool, approved, hints, definition, approved_by, approved_at, blocked, blocked_by, blocked_at, off_by, off_at FROM approval;
		DROP TABLE held; DROP TABLE approval; ALTER TABLE before RENAME TO approval;
		DROP TABLE token; ALTER TABLE result DROP COLUMN tool; DROP TABLE activity_took; ALTER TABLE activity_hour DROP COLUMN last;
		DROP TABLE activity_signed; DROP TABLE activity_erasing; ALTER TABLE activity_position DROP COLUMN signer; ALTER TABLE activity_checkpoint DROP COLUMN chain; ALTER TABLE activity_checkpoint DROP COLUMN key; ALTER TABLE activity_checkpoint DROP COLUMN signature;
		DROP TABLE learned_session; DROP TABLE session_key; DROP TABLE ended_session; DROP TABLE lease; DROP TABLE question; DROP TABLE presence_statement; DROP TABLE presence_anchor;
		DELETE FROM goose_db_version WHERE version_id >= 6`); err != nil {
		t.Fatal(err)
	}
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	db = store.OpenSQLite(path, nil)
	defer func() { _ = db.Close() }()
	saved, err := db.LoadApprovals(t.Context())
	if rows := saved.Tools["s"]; err != nil || len(rows) != 1 || rows[0].Kind != tool.KindTool || !rows[0].Approves(f) || rows[0].Off == nil {
		t.Errorf("LoadApprovals gave %+v, %v", saved, err)
	}
	if raw, err := db.ApprovedDefinition(t.Context(), tool.KindTool, id); err != nil || string(raw) != `{"name":"t"}` {
		t.Errorf("ApprovedDefinition gave %s, %v", raw, err)
	}
}
