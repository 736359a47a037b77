package store_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/store"
)

// TestPeek checks that Peek returns the items that wait for review, whether the database is open or closed, and changes
// nothing.
func TestPeek(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "mcpproxy.db")
	if _, err := store.Peek(t.Context(), path); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("Peek without a file gave %v", err)
	}
	db := store.OpenSQLite(path, nil)
	now := time.Now()
	print := func(n byte) (f tool.Fingerprint) { f[0] = n; return f }
	held := func(kind tool.DefinitionKind, name string, n byte) approval.HeldDefinition {
		return approval.HeldDefinition{Kind: kind, Tool: name, Fingerprint: print(n), Since: now}
	}
	pin := func(n byte) *approval.Pin {
		return &approval.Pin{Fingerprint: print(n), AuthorAndTime: approval.AuthorAndTime{By: "admin", At: now}}
	}
	for _, err := range []error{
		db.SaveTools(t.Context(), "s", []json.RawMessage{[]byte(`{"name":"new"}`), []byte(`{"name":"changed"}`), []byte(`{"name":"approved"}`)}),
		db.SaveHeld(t.Context(), "s", []approval.HeldDefinition{held("", "new", 1), held("", "changed", 2), held("", "approved", 3), held("", "gone", 4), held(tool.KindPrompt, "ask", 5)}),
		db.SaveApprovals(t.Context(), approval.ChangeSet{Server: "s", Tools: []approval.DecisionRow{{Tool: "changed", DefinitionDecisions: approval.DefinitionDecisions{Pin: pin(9)}}, {Tool: "approved", DefinitionDecisions: approval.DefinitionDecisions{Pin: pin(3)}}},
			Propose: &approval.ServerProposal{Name: "idea", Server: []byte("{}"), AuthorAndTime: approval.AuthorAndTime{By: "agent", At: now}}}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	look := func(when string) {
		t.Helper()
		s, err := store.Peek(t.Context(), path)
		if err != nil || s.Version != s.Newest || s.Newest < 8 || !maps.Equal(s.Waiting, map[string]store.WaitingDefinitionCounts{"s": {Tools: 2, Primitives: 1}}) ||
			len(s.Proposed) != 1 || s.Proposed[0] != "idea" {
			t.Errorf("%s: %+v, %v", when, s, err)
		}
	}
	look("open")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	look("closed")
	if _, err := openSQL(t, path).Exec("INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, 1)"); err != nil {
		t.Fatal(err)
	}
	if s, err := store.Peek(t.Context(), path); err != nil || s.Version != 99 {
		t.Errorf("Peek at a newer database gave %+v, %v", s, err)
	}
}

// TestPeekAtAForeignFile checks that Peek returns an error for a file that is not a database of MCPProxy.
func TestPeekAtAForeignFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const text = "this is no database, and it is longer than a header of one is, which has one hundred bytes; so it goes on and on"
	path := filepath.Join(dir, "mcpproxy.db")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Peek(t.Context(), path); err == nil {
		t.Error("Peek returned no error")
	}
	if after, _ := os.ReadFile(path); string(after) != text {
		t.Error("the file was changed")
	}
	if _, err := store.Peek(t.Context(), dir); err == nil {
		t.Error("Peek at a directory returned no error")
	}
}
