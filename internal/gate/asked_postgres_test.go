//go:build unix

package gate

import (
	"flag"
	"strconv"
	"testing"

	"mcpproxy/internal/store"
	"mcpproxy/internal/testutil/pgtest"
	"mcpproxy/internal/testutil/volume"
)

// fewWalks reduces the number of walks, because each walk opens several connections and prepares the database.
func fewWalks(t *testing.T) {
	checks := flag.Lookup("rapid.checks").Value
	before := checks.String()
	t.Cleanup(func() { _ = checks.Set(before) })
	_ = checks.Set(strconv.Itoa(volume.FullOrQuick(100, 8))) // cannot fail: the value is a number
}

// TestNothingRunsUnapprovedOnInstances is TestNothingRunsUnapproved with a shared database: after a restart or crash, the
// process continues as another instance.
func TestNothingRunsUnapprovedOnInstances(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: starts PostgreSQL")
	}
	fewWalks(t)
	address := pgtest.StartServer(t).CreateDatabase(t)
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
