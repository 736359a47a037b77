package store_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"mcpproxy/internal/store"
	"mcpproxy/internal/testutil/volume"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDir); dir != "" {
		fmt.Fprintln(os.Stderr, runCrashing(dir))
		os.Exit(1)
	}
	if path := os.Getenv(migrateFile); path != "" {
		if err := runMigrating(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	volume.ConfigureRapid()
	goleak.VerifyTestMain(m)
}

func openSQLite(t *testing.T, dir string) store.Database {
	db := store.OpenSQLite(filepath.Join(dir, "mcpproxy.db"), nil)
	t.Cleanup(func() { db.Close() })
	return db
}

func TestSQLite(t *testing.T) {
	t.Parallel()
	runSuite(t, openSQLite)
}
