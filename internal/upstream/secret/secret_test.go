package secret

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zalando/go-keyring"
)

// opened returns the Store of a directory, in the keyring of the process or not.
func opened(dir string, off bool) *Store {
	s := OpenStore(dir, nil)
	s.vault.keyring.off = off
	return s
}

func TestStore(t *testing.T) {
	for name, off := range map[string]bool{"keyring": false, "file": true} {
		t.Run(name, func(t *testing.T) {
			keyring.MockInit()
			dir, ctx := t.TempDir(), context.Background()
			s := opened(dir, off)
			if _, err := s.Get(ctx, "A"); !errors.Is(err, ErrMissing) {
				t.Errorf("nothing is there: %v", err)
			}
			if left, _ := os.ReadDir(dir); len(left) != 0 {
				t.Errorf("looking made %v", left)
			}
			first, err := s.Set(ctx, "A", "planted-value-1")
			if err != nil || string(first.Place) != name {
				t.Fatalf("%+v %v", first, err)
			}
			second, err := s.Set(ctx, "A", "planted-value-2")
			if err != nil || second.Revision == first.Revision {
				t.Errorf("the revision stays %q (%v)", second.Revision, err)
			}
			again := opened(dir, off)
			if got, err := again.Get(ctx, "A"); got != "planted-value-2" || err != nil {
				t.Errorf("%q %v", got, err)
			}
			if all, err := again.ListIndex(); len(all) != 1 || all["A"] != second || err != nil {
				t.Errorf("%+v %v", all, err)
			}
			nothingStands(t, dir, "planted-value")
			if err := again.Delete(ctx, "A"); err != nil {
				t.Error(err)
			}
			if err := again.Delete(ctx, "A"); !errors.Is(err, ErrMissing) {
				t.Errorf("deleted twice: %v", err)
			}
			if _, err := s.Get(ctx, "A"); !errors.Is(err, ErrMissing) {
				t.Errorf("deleted: %v", err)
			}
		})
	}
}

// nothingStands checks that no file in a directory contains text, or can be read by other users.
func nothingStands(t *testing.T, dir, text string) {
	t.Helper()
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		raw, err := os.ReadFile(filepath.Join(dir, e.Name()))
		info, _ := e.Info()
		if err != nil || strings.Contains(string(raw), text) || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, %v", e.Name(), info.Mode(), err)
		}
	}
}

// The behaviour when the index and the keyring differ.
func TestIndexAndKeyringDiffer(t *testing.T) {
	keyring.MockInit()
	dir, ctx := t.TempDir(), context.Background()
	s := opened(dir, false)
	if _, err := s.Set(ctx, "A", "v"); err != nil {
		t.Fatal(err)
	}
	if _, err := opened(dir, true).Get(ctx, "A"); !errors.Is(err, ErrLocked) {
		t.Errorf("without the keyring: %v", err)
	}
	if err := opened(dir, true).Delete(ctx, "A"); !errors.Is(err, ErrLocked) {
		t.Errorf("deleted without the keyring: %v", err)
	}
	if _, err := opened(dir, true).Set(ctx, "A", "newer"); err != nil {
		t.Fatal(err)
	}
	if err := opened(dir, true).Delete(ctx, "A"); !errors.Is(err, ErrLocked) {
		t.Errorf("an older value would come back from the keyring: %v", err)
	}
	if _, err := s.Set(ctx, "A", "v"); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, indexName)); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Get(ctx, "A"); got != "v" || err != nil {
		t.Errorf("a value that the index does not name: %q %v", got, err)
	}
	if err := s.Delete(ctx, "A"); err != nil {
		t.Errorf("the same, deleted: %v", err)
	}
	if _, err := s.Set(ctx, "B", "v"); err != nil {
		t.Fatal(err)
	}
	keyring.MockInit() // empty
	if _, err := s.Get(ctx, "B"); !errors.Is(err, ErrMissing) {
		t.Errorf("a name without a value: %v", err)
	}
	if err := s.Delete(ctx, "B"); err != nil {
		t.Errorf("the same, deleted: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, indexName), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Set(ctx, "C", "v"); err == nil || !strings.Contains(err.Error(), "move it away") {
		t.Errorf("a broken index: %v", err)
	}
}

func TestBounds(t *testing.T) {
	for name, ok := range map[string]bool{
		"A": true, "_a.b-c9": true, strings.Repeat("x", MaxName): true,
		"": false, "9a": false, "a b": false, "a}": false, "a\n": false, "ä": false, strings.Repeat("x", MaxName+1): false,
	} {
		if err := CheckName(name); (err == nil) != ok {
			t.Errorf("name %q: %v", name, err)
		}
	}
	for value, ok := range map[string]bool{
		"x": true, "a\nb": true, strings.Repeat("x", MaxValue): true,
		"": false, "a\x00b": false, "\xff": false, strings.Repeat("x", MaxValue+1): false,
	} {
		_, err := opened(t.TempDir(), true).Set(context.Background(), "A", value)
		if (err == nil) != ok || err != nil && len(value) > 2 && strings.Contains(err.Error(), value) {
			t.Errorf("a value of %d bytes: %v", len(value), err)
		}
	}
}

const writerDir = "SECRET_TEST_DIR"

// TestWriter is the child process of TestProcesses.
func TestWriter(t *testing.T) {
	dir := os.Getenv(writerDir)
	if dir == "" {
		t.Skip("it is run by TestProcesses")
	}
	s := opened(dir, true)
	for i := range 10 {
		name := fmt.Sprintf("P%d_%d", os.Getpid(), i)
		if _, err := s.Set(context.Background(), name, "value of "+name); err != nil {
			t.Error(err)
		}
	}
}

// Processes that write at the same time lose nothing.
func TestProcesses(t *testing.T) {
	dir := t.TempDir()
	var running []*exec.Cmd
	for range 4 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestWriter$")
		cmd.Env = append(os.Environ(), writerDir+"="+dir)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		running = append(running, cmd)
	}
	for _, cmd := range running {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	s := opened(dir, true)
	all, err := s.ListIndex()
	if len(all) != 40 || err != nil {
		t.Errorf("%d of 40 names (%v)", len(all), err)
	}
	for name := range all {
		if got, err := s.Get(context.Background(), name); got != "value of "+name || err != nil {
			t.Errorf("%s: %q %v", name, got, err)
		}
	}
}
