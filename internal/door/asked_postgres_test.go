//go:build unix

package door

import (
	"testing"

	"mcpproxy/internal/store"
	"mcpproxy/internal/store/pgtest"
)

// TestNothingRunsUnapprovedOnInstances is TestNothingRunsUnapproved with a database that is
// shared: who restarts or dies comes back as another instance.
func TestNothingRunsUnapprovedOnInstances(t *testing.T) {
	address := pgtest.Start(t).Database(t)
	walkAtRandom(t, 8, func() func() database {
		return func() database {
			db, err := store.OpenPostgres(address, t.TempDir(), nil)
			if err != nil {
				t.Fatal(err)
			}
			return db
		}
	})
}
