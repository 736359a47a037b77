package store_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/store"
	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/testutil/volume"
)

// migrateFile, when set, makes the test binary a process that opens a database, and ends.
const migrateFile = "MCPPROXY_MIGRATE_FILE"

func runMigrating(path string) error {
	db := store.Open(path, nil)
	if err := db.Ready(context.Background()); err != nil {
		return err
	}
	return db.Close()
}

// recordsBefore is how many the log of testdata/before-proof has: 46 and what is told when it is
// opened, the key.
const recordsBefore = 40 + 1 + 5 + 1

// The versions of the database that first had approvals, and those of what is no tool.
const (
	approvalsSince = 3
	kindsSince     = 6
)

// ofVersion unpacks a log with its database as the version of the schema had it.
func ofVersion(t *testing.T, version int64) (dir string) {
	t.Helper()
	dir = unpack(t)
	path := filepath.Join(dir, "mcpproxy.db")
	old := filepath.Join(dir, "old.db")
	if err := store.MigrateTo(t.Context(), old, version); err != nil {
		t.Fatal(err)
	}
	db := database(t, old)
	db.SetMaxOpenConns(1)
	write(t, db, "PRAGMA journal_mode = DELETE")
	write(t, db, "ATTACH ? AS later", path)
	for _, row := range readRaw(t, db, `SELECT m.name, group_concat(o.name) FROM main.sqlite_master m, pragma_table_info(m.name, 'main') o, pragma_table_info(m.name, 'later') l
		WHERE m.type = 'table' AND m.name <> 'goose_db_version' AND o.name = l.name GROUP BY 1`) {
		write(t, db, fmt.Sprintf("DELETE FROM main.%s", row[0]))
		write(t, db, fmt.Sprintf("INSERT INTO main.%s (%s) SELECT %s FROM later.%s", row[0], row[1], row[1], row[0]))
	}
	if version >= approvalsSince {
		name, kind := "", ""
		if version >= kindsSince {
			name, kind = "kind, ", "'', "
		}
		write(t, db, "INSERT INTO main.approval (server, "+name+"tool, blocked, blocked_by, blocked_at) VALUES ('s', "+kind+"'kill', zeroblob(32), 'admin', 7)")
		write(t, db, "INSERT INTO main.launch (server, fingerprint, approved_by, approved_at) VALUES ('s', zeroblob(32), 'admin', 8)")
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(path + suffix); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	if err := os.Rename(old, path); err != nil {
		t.Fatal(err)
	}
	return dir
}

// upgraded opens what ofVersion has made, and looks whether all of it is there.
func upgraded(t *testing.T, dir string, version int64) {
	t.Helper()
	l, db := proven(t, dir)
	defer closeBoth(t, l, db)
	if p, err := l.List(t.Context(), activity.Filter{Limit: 100}); err != nil || p.Total != recordsBefore {
		t.Fatalf("%d records, %v", p.Total, err)
	}
	if p, err := l.List(t.Context(), activity.Filter{Search: "failed old"}); err != nil || p.Total != 9 {
		t.Errorf("%d found, %v", p.Total, err)
	}
	verified(t, l)
	saved, err := db.LoadApprovals(t.Context())
	if err != nil || saved.Lost {
		t.Fatalf("%+v, %v", saved, err)
	}
	if version >= approvalsSince && (len(saved.Launches) != 1 || saved.Launches[0].Server != "s" || !blocks(saved, "kill")) {
		t.Errorf("the approvals are %+v", saved)
	}
}

func blocks(s approval.Saved, tool string) bool {
	return slices.ContainsFunc(s.Tools["s"], func(r approval.Row) bool { return r.Tool == tool && r.Block != nil })
}

// TestEveryVersionOpens: a database with the schema of each version before, and the rows that it could
// hold of a log that was killed.
func TestEveryVersionOpens(t *testing.T) {
	volume.SkipUnderRace(t)
	t.Parallel()
	for version := int64(1); version < store.Newest(t); version++ {
		t.Run(fmt.Sprint(version), func(t *testing.T) { upgraded(t, ofVersion(t, version), version) })
	}
}

// schemaOf is the text of everything that a database is made of.
func schemaOf(t *testing.T, path string) (version int64, schema map[string]string) {
	t.Helper()
	db := database(t, path)
	defer db.Close()
	schema = map[string]string{}
	for _, row := range readRaw(t, db, "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL") {
		schema[fmt.Sprint(row[0])] = fmt.Sprint(row[1])
	}
	if err := db.QueryRow("SELECT max(version_id) FROM goose_db_version").Scan(&version); err != nil {
		t.Fatal(err)
	}
	return version, schema
}

// isOneVersion fails unless the database has just what one version of the schema has.
func isOneVersion(t *testing.T, path string) int64 {
	t.Helper()
	version, schema := schemaOf(t, path)
	whole := filepath.Join(t.TempDir(), "whole.db")
	if err := store.MigrateTo(t.Context(), whole, version); err != nil {
		t.Fatal(err)
	}
	if _, want := schemaOf(t, whole); !maps.Equal(schema, want) {
		t.Errorf("it says version %d, and has\n%v, not\n%v", version, schema, want)
	}
	return version
}
