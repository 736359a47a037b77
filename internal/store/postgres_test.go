//go:build unix

package store_test

import (
	"testing"

	"mcpproxy/internal/store"
	"mcpproxy/internal/store/pgtest"
	"mcpproxy/internal/store/storetest"
)

// TestPostgres runs the suite on a real server.
func TestPostgres(t *testing.T) {
	server := pgtest.Start(t)
	databases := map[string]string{}
	storetest.Run(t, func(t *testing.T, dir string) storetest.Store {
		if databases[dir] == "" {
			databases[dir] = server.Database(t)
		}
		db, err := store.OpenPostgres(databases[dir], dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		return db
	})
}
