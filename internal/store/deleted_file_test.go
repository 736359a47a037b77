package store_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"mcpproxy/internal/store"
	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/testutil/faultfs"
)

// TestADeletedDatabaseIsWrittenAgain deletes the files or their directory while the database is in use. All decisions
// and records must still exist afterwards, also for the next process.
func TestADeletedDatabaseIsWrittenAgain(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]func(dir string) error{
		"the file":    func(dir string) error { return os.Remove(filepath.Join(dir, "mcpproxy.db")) },
		"the wal":     func(dir string) error { return os.Remove(filepath.Join(dir, "mcpproxy.db-wal")) },
		"the folder":  faultfs.RemoveAllWithRetry,
		"replaced by": func(dir string) error { return replaceFile(filepath.Join(dir, "mcpproxy.db")) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			l, db := openLogAndDB(t, dir)
			addCalls(t, l, 20)
			if _, err := listAfterChecks(t, l, activity.Filter{}); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, "mcpproxy.db")
			if err := remove(dir); err != nil {
				t.Fatal(err)
			}
			was, _ := os.Stat(path)
			deadline, tick := time.Now().Add(store.Patience), time.NewTicker(10*time.Millisecond)
			defer tick.Stop()
			for {
				now, err := os.Stat(path)
				if err == nil && (was == nil || !os.SameFile(was, now)) && db.Ready(t.Context()) == nil && !l.Health().Degraded {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("the database was not written again: %v, %+v", err, l.Health())
				}
				<-tick.C
			}
			addCalls(t, l, 5)
			for range 2 {
				p, err := listAfterChecks(t, l, activity.Filter{})
				calls := 0
				for _, r := range p.Records {
					if r.Type == activity.ToolCall {
						calls++
					}
				}
				if err != nil || calls != 25 {
					t.Fatalf("got %d calls, %v", calls, err)
				}
				closeLogAndDB(t, l, db)
				checkIntegrity(t, path)
				if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
					t.Errorf("stat = %v, %v", info, err)
				}
				l, db = openLogAndDB(t, dir)
			}
			closeLogAndDB(t, l, db)
		})
	}
}

// replaceFile replaces a file by another file, as an editor does.
func replaceFile(path string) error {
	if err := os.WriteFile(path+".theirs", fmt.Append(nil, "theirs"), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".theirs", path)
}
