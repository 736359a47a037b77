package store_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"mcpproxy/internal/store"
	"mcpproxy/internal/testutil/faultfs"
	"mcpproxy/internal/testutil/volume"
)

// TestKilledWhileItUpgrades kills the process at different writes of the migrations, from the first to the last. After
// each kill, the schema must be that of one version, the next start must continue, and all data must exist.
// MCPPROXY_KILLS sets the number of kills.
func TestKilledWhileItUpgrades(t *testing.T) {
	volume.SkipUnderRace(t)
	t.Parallel()
	faultfs.SkipUnlessAvailable(t)
	kills := 12
	if set, err := strconv.Atoi(os.Getenv("MCPPROXY_KILLS")); err == nil {
		kills = set
	}
	dir := unpackVersion(t, approvalsSince)
	image, err := os.ReadFile(filepath.Join(dir, "mcpproxy.db"))
	if err != nil {
		t.Fatal(err)
	}
	trace := filepath.Join(t.TempDir(), "trace")
	if err := migrateUnder(filepath.Join(dir, "mcpproxy.db"), "-e", "trace=pwrite64", "-o", trace); err != nil {
		t.Fatalf("the migration without a kill failed: %v", err)
	}
	said, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	writes := bytes.Count(said, []byte("pwrite64("))
	if writes < 50 {
		t.Fatalf("the migration made only %d writes", writes)
	}
	var left []int64
	for i := range kills {
		at := 1 + i*(writes-1)/max(1, kills-1)
		dir := unpackVersion(t, approvalsSince)
		path := filepath.Join(dir, "mcpproxy.db")
		if err := os.WriteFile(path, image, 0o600); err != nil {
			t.Fatal(err)
		}
		// strace counts the writes of each thread, so a kill may be later than requested, or not happen at all.
		killed := migrateUnder(path, "-e", "trace=pwrite64", "-o", os.DevNull, "-e", fmt.Sprintf("inject=pwrite64:signal=SIGKILL:when=%d", at))
		version := checkOneVersion(t, path)
		if killed == nil && version != store.NewestSchema(t) {
			t.Errorf("write %d: the process ended without a kill at version %d", at, version)
		}
		left = append(left, version)
		checkUpgraded(t, dir, approvalsSince)
	}
	t.Logf("%d writes; after %d kills the versions were %v", writes, kills, left)
	if slices.Sort(left); len(slices.Compact(left)) < 3 {
		t.Errorf("the kills did not interrupt the migrations, the versions are %v", left)
	}
}

// migrateUnder opens a database in a separate process under strace.
func migrateUnder(path string, args ...string) error {
	cmd := exec.Command("strace", append(append([]string{"-f", "-qq"}, args...), os.Args[0])...)
	cmd.Env = append(os.Environ(), migrateFile+"="+path, "GOMAXPROCS=1")
	cmd.Stderr = os.Stderr
	return cmd.Run()
}
