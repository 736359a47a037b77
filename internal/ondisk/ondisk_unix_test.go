//go:build unix

package ondisk_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"mcpproxy/internal/ondisk"
)

// TestUnlockedWhileAChildStarts checks that a copy of the descriptor does not keep the lock. A child process has such a
// copy until it executes its program.
func TestUnlockedWhileAChildStarts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	f, err := ondisk.LockFile(path)
	if err != nil {
		t.Fatal(err)
	}
	child, err := syscall.Dup(int(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Close(child) }()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := ondisk.LockFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}
