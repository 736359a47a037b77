package ondisk_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"mcpproxy/internal/ondisk"
)

func TestWriteNew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("what a crash has left"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := ondisk.WriteNewFile(path, []byte("one"), []byte("two")); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil || string(text) != "onetwo" {
		t.Errorf("content = %q, %v, want onetwo", text, err)
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("stat = %v, %v, want mode 0600", info, err)
	}
	if err := ondisk.SyncDir(filepath.Dir(path)); err != nil {
		t.Error(err)
	}
}

func TestReplace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for _, want := range []string{"old", "new"} {
		if err := ondisk.ReplaceFile(path, []byte(want)); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil || string(text) != want {
			t.Errorf("content = %q, %v, want %q", text, err, want)
		}
	}
	if err := ondisk.ReplaceFile(filepath.Dir(path), nil); err == nil {
		t.Error("ReplaceFile replaced a folder")
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 1 {
		t.Errorf("the folder contains %v, %v, want only the file", left, err)
	}
}

func TestNamed(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows does not rename or delete an open file")
	}
	path := filepath.Join(t.TempDir(), "file")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	is := func(want bool) {
		t.Helper()
		if ok, err := ondisk.IsFileStillAtPath(path, f); err != nil || ok != want {
			t.Errorf("IsFileStillAtPath = %v, %v, want %v", ok, err, want)
		}
	}
	is(true)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	is(false)
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	is(false)
}

func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	f, err := ondisk.LockFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ondisk.LockFile(path); !errors.Is(err, ondisk.ErrLocked) {
		t.Errorf("a second LockFile returned %v, want ErrLocked", err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if f, err = ondisk.LockFile(path); err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := ondisk.LockFile(filepath.Join(path, "x")); err == nil || errors.Is(err, ondisk.ErrLocked) {
		t.Errorf("LockFile with an impossible path returned %v, want another error than ErrLocked", err)
	}
}
