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

// migrateFile is an environment variable. If it is set, the test binary opens this database and exits.
const migrateFile = "MCPPROXY_MIGRATE_FILE"

func runMigrating(path string) error {
	db := store.OpenSQLite(path, nil)
	if err := db.Ready(context.Background()); err != nil {
		return err
	}
	return db.Close()
}

// recordsBefore is the number of records in the log of testdata/before-proof: 46, and one about the key when the log is
// opened.
const recordsBefore = 40 + 1 + 5 + 1

// Versions of the schema that introduced approvals, and approvals of primitives.
const (
	approvalsSince = 3
	kindsSince     = 6
)

// unpackVersion unpacks a log, and its database with a certain version of the schema.
func unpackVersion(t *testing.T, version int64) (dir string) {
	t.Helper()
	dir = unpackKilledLog(t)
	path := filepath.Join(dir, "mcpproxy.db")
	old := filepath.Join(dir, "old.db")
	if err := store.MigrateTo(t.Context(), old, version); err != nil {
		t.Fatal(err)
	}
	db := openSQL(t, old)
	db.SetMaxOpenConns(1)
	execSQL(t, db, "PRAGMA journal_mode = DELETE")
	execSQL(t, db, "ATTACH ? AS later", path)
	for _, row := range readRawRows(t, db, `SELECT m.name, group_concat(o.name) FROM main.sqlite_master m, pragma_table_info(m.name, 'main') o, pragma_table_info(m.name, 'later') l
		WHERE m.type = 'table' AND m.name <> 'goose_db_version' AND o.name = l.name GROUP BY 1`) {
		execSQL(t, db, fmt.Sprintf("DELETE FROM main.%s", row[0]))
		execSQL(t, db, fmt.Sprintf("INSERT INTO main.%s (%s) SELECT %s FROM later.%s", row[0], row[1], row[1], row[0]))
	}
	if version >= approvalsSince {
		name, kind := "", ""
		if version >= kindsSince {
			name, kind = "kind, ", "'', "
		}
		execSQL(t, db, "INSERT INTO main.approval (server, "+name+"tool, blocked, blocked_by, blocked_at) VALUES ('s', "+kind+"'kill', zeroblob(32), 'admin', 7)")
		execSQL(t, db, "INSERT INTO main.launch (server, fingerprint, approved_by, approved_at) VALUES ('s', zeroblob(32), 'admin', 8)")
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

// checkUpgraded opens the files that unpackVersion has unpacked, and checks that all data exists.
func checkUpgraded(t *testing.T, dir string, version int64) {
	t.Helper()
	l, db := openSigningLog(t, dir)
	defer closeLogAndDB(t, l, db)
	if p, err := l.List(t.Context(), activity.Filter{Limit: 100}); err != nil || p.Total != recordsBefore {
		t.Fatalf("got %d records, %v", p.Total, err)
	}
	if p, err := l.List(t.Context(), activity.Filter{Search: "failed old"}); err != nil || p.Total != 9 {
		t.Errorf("the search found %d records, %v", p.Total, err)
	}
	checkVerified(t, l)
	saved, err := db.LoadApprovals(t.Context())
	if err != nil || saved.Lost {
		t.Fatalf("LoadApprovals gave %+v, %v", saved, err)
	}
	if version >= approvalsSince && (len(saved.Launches) != 1 || saved.Launches[0].Server != "s" || !isBlocked(saved, "kill")) {
		t.Errorf("the approvals are %+v", saved)
	}
}

func isBlocked(s approval.StoredDecisions, tool string) bool {
	return slices.ContainsFunc(s.Tools["s"], func(r approval.DecisionRow) bool { return r.Tool == tool && r.Block != nil })
}

// TestEveryVersionOpens opens a database of each earlier schema version, with typical rows and a log whose process was
// killed.
func TestEveryVersionOpens(t *testing.T) {
	volume.SkipUnderRace(t)
	t.Parallel()
	for version := int64(1); version < store.NewestSchema(t); version++ {
		t.Run(fmt.Sprint(version), func(t *testing.T) { checkUpgraded(t, unpackVersion(t, version), version) })
	}
}

// schemaOf returns the version of a database, and the SQL of all its tables and indexes.
func schemaOf(t *testing.T, path string) (version int64, schema map[string]string) {
	t.Helper()
	db := openSQL(t, path)
	defer db.Close()
	schema = map[string]string{}
	for _, row := range readRawRows(t, db, "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL") {
		schema[fmt.Sprint(row[0])] = fmt.Sprint(row[1])
	}
	if err := db.QueryRow("SELECT max(version_id) FROM goose_db_version").Scan(&version); err != nil {
		t.Fatal(err)
	}
	return version, schema
}

// checkOneVersion fails unless the schema of the database is exactly that of one version.
func checkOneVersion(t *testing.T, path string) int64 {
	t.Helper()
	version, schema := schemaOf(t, path)
	whole := filepath.Join(t.TempDir(), "whole.db")
	if err := store.MigrateTo(t.Context(), whole, version); err != nil {
		t.Fatal(err)
	}
	if _, want := schemaOf(t, whole); !maps.Equal(schema, want) {
		t.Errorf("the database has version %d and the schema\n%v, want\n%v", version, schema, want)
	}
	return version
}
