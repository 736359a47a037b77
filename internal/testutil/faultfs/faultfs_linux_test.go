package faultfs

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestExt4FailsAndRecovers(t *testing.T) {
	SkipUnlessAvailable(t)
	for name, die := range map[string]struct {
		fault func(*Mount) error
		want  error
	}{"abort": {(*Mount).MakeReadOnly, syscall.EROFS}, "shutdown": {(*Mount).FailWithEIO, syscall.EIO}} {
		m, err := MountExt4(filepath.Join(t.TempDir(), "m"), 16<<20)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		})
		file := filepath.Join(m.Dir, "f")
		if err := os.WriteFile(file, []byte("before"), 0o600); err != nil {
			t.Fatal(err)
		}
		syscall.Sync()
		if err := die.fault(m); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("dead"), 0o600); !errors.Is(err, die.want) {
			t.Fatalf("%s: a write gives %v, want %v", name, err, die.want)
		}
		if err := m.UnmountAndRepair(); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(file)
		if err != nil || string(got) != "before" {
			t.Fatalf("%s: afterwards %q, %v", name, got, err)
		}
		if err := os.WriteFile(file, []byte("after"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
