package store_test

import (
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"mcpproxy/internal/store"
	"mcpproxy/internal/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func openSQLite(t *testing.T, dir string) storetest.Store {
	db := store.Open(filepath.Join(dir, "mcpproxy.db"), nil)
	t.Cleanup(func() { db.Close() })
	return db
}

func TestSQLite(t *testing.T) { storetest.Run(t, openSQLite) }
