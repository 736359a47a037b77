//go:build unix

package clients

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"mcpproxy/internal/problem"
)

// home returns a directory with a journal.
func home(t *testing.T) (dir string, j *Journal) {
	t.Helper()
	dir = t.TempDir()
	j, err := OpenJournal(filepath.Join(dir, "data", "client_changes"))
	if err != nil {
		t.Fatal(err)
	}
	return dir, j
}

func put(t *testing.T, path, text string, mode fs.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func wantFile(t *testing.T, path, text string, mode fs.FileMode) {
	t.Helper()
	got, err := os.ReadFile(path)
	info, statErr := os.Stat(path)
	if err != nil || statErr != nil || string(got) != text || info.Mode().Perm() != mode {
		t.Errorf("%s: %q, %v, %v; want %q, %v", path, got, info, errors.Join(err, statErr), text, mode)
	}
}

func wantProblem(t *testing.T, err error, parts ...string) {
	t.Helper()
	var p *problem.Problem
	if !errors.As(err, &p) || p.Hint == "" {
		t.Fatalf("got error %v", err)
	}
	for _, part := range parts {
		if !strings.Contains(p.Message+" "+p.Hint, part) {
			t.Errorf("%q is not in %q, %q", part, p.Message, p.Hint)
		}
	}
}

func TestWriteAndUndo(t *testing.T) {
	for name, c := range map[string]struct {
		mode fs.FileMode
		link bool
	}{"open": {0o644, false}, "closed": {0o600, false}, "a link": {0o640, true}} {
		t.Run(name, func(t *testing.T) {
			dir, j := home(t)
			path, target := filepath.Join(dir, "c.json"), filepath.Join(dir, "c.json")
			if c.link {
				target = filepath.Join(dir, "dotfiles", "real.json")
			}
			put(t, target, "\uFEFFbefore\r\n", c.mode)
			if c.link {
				if err := os.Symlink(target, path); err != nil {
					t.Fatal(err)
				}
			}
			f, err := ReadUserFile(path, dir)
			if err != nil || f.Target != target || string(f.Text) != "\uFEFFbefore\r\n" {
				t.Fatalf("%+v, %v", f, err)
			}
			change, err := j.WriteFile(f, []byte("after"), "connect x")
			if err != nil {
				t.Fatal(err)
			}
			wantFile(t, target, "after", c.mode)
			wantFile(t, change.Backup, "\uFEFFbefore\r\n", 0o600)
			if info, err := os.Stat(filepath.Dir(change.Backup)); err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("mode of the journal: %v, %v", info.Mode(), err)
			}
			if entries, err := os.ReadDir(filepath.Dir(target)); err != nil || len(entries) > 3 {
				t.Errorf("remaining files: %v, %v", entries, err)
			}
			if all, err := j.Changes(); err != nil || len(all) != 1 || all[0].What != "connect x" || all[0].Undone != nil {
				t.Errorf("changes: %+v, %v", all, err)
			}
			if _, err := j.Undo(change.ID, nil); err != nil {
				t.Fatal(err)
			}
			wantFile(t, target, "\uFEFFbefore\r\n", c.mode)
			if info, err := os.Lstat(path); err != nil || (info.Mode()&fs.ModeSymlink != 0) != c.link {
				t.Errorf("the link was replaced by a file: %v, %v", info.Mode(), err)
			}
			_, err = j.Undo(change.ID, nil)
			wantProblem(t, err, "undone already")
		})
	}
}

// TestUndoLeavesOtherFilesAlone checks that a change is not undone if the link now points to another file, even if that
// file has the same text.
func TestUndoLeavesOtherFilesAlone(t *testing.T) {
	dir, j := home(t)
	path, was, is := filepath.Join(dir, "c.json"), filepath.Join(dir, "was.json"), filepath.Join(dir, "is.json")
	put(t, was, "before", 0o600)
	put(t, is, "after", 0o600)
	must(t, os.Symlink(was, path))
	f, err := ReadUserFile(path, dir)
	must(t, err)
	change, err := j.WriteFile(f, []byte("after"), "connect x")
	must(t, err)
	must(t, errors.Join(os.Remove(path), os.Symlink(is, path)))
	_, err = j.Undo(change.ID, nil)
	wantProblem(t, err, "was changed since")
	wantFile(t, is, "after", 0o600)
}

func TestNewFile(t *testing.T) {
	dir, j := home(t)
	path := filepath.Join(dir, "client", "sub", "new.json")
	f, err := ReadUserFile(path, dir)
	if err != nil || f.Exists {
		t.Fatalf("%+v, %v", f, err)
	}
	change, err := j.WriteFile(f, []byte("{}"), "x")
	if err != nil || !change.Created || change.Backup != "" {
		t.Fatalf("%+v, %v", change, err)
	}
	wantFile(t, path, "{}", 0o600)
	if _, err := j.Undo(change.ID, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the new file still exists: %v", err)
	}
}

func TestRefusals(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "elsewhere")
	put(t, outside, "x", 0o644)
	for name, c := range map[string]struct {
		make  func(t *testing.T, path string)
		parts []string
	}{
		"a link out":       {func(t *testing.T, path string) { must(t, os.Symlink(outside, path)) }, []string{"is a link to " + outside}},
		"a dangling link":  {func(t *testing.T, path string) { must(t, os.Symlink(path+".gone", path)) }, []string{"does not exist"}},
		"a link in a loop": {func(t *testing.T, path string) { must(t, os.Symlink(path, path)) }, []string{"cannot be read"}},
		"a directory":      {func(t *testing.T, path string) { must(t, os.Mkdir(path, 0o755)) }, []string{"not a regular file"}},
		"a pipe":           {func(t *testing.T, path string) { must(t, syscall.Mkfifo(path, 0o600)) }, []string{"not a regular file"}},
		"too large": {func(t *testing.T, path string) {
			put(t, path, "", 0o600)
			must(t, os.Truncate(path, maxSize+1))
		}, []string{"larger than"}},
		"another user's": {func(t *testing.T, path string) {
			put(t, path, "x", 0o644)
			if os.Geteuid() != 0 {
				t.Skip("only root can give files away")
			}
			must(t, os.Chown(path, 1, 1))
		}, []string{"another user"}},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "file")
			c.make(t, path)
			_, err := ReadUserFile(path, filepath.Dir(path))
			wantProblem(t, err, c.parts...)
		})
	}
	t.Run("below a file", func(t *testing.T) {
		_, err := ReadUserFile(filepath.Join(outside, "new.json"), filepath.Dir(outside))
		wantProblem(t, err, "")
	})
	t.Run("read-only", func(t *testing.T) {
		dir, j := home(t)
		path := filepath.Join(dir, "f")
		put(t, path, "x", 0o444)
		f, err := ReadUserFile(path, dir)
		must(t, err)
		_, err = j.WriteFile(f, []byte("y"), "x")
		wantProblem(t, err, "is not writable", "chmod u+w")
		wantFile(t, path, "x", 0o444)
	})
}

// TestChangedMeanwhile checks that no change by another program is lost.
func TestChangedMeanwhile(t *testing.T) {
	for name, meanwhile := range map[string]func(t *testing.T, path string){
		"written": func(t *testing.T, path string) { put(t, path, "theirs", 0o644) },
		"gone":    func(t *testing.T, path string) { must(t, os.Remove(path)) },
		"now a link": func(t *testing.T, path string) {
			put(t, path+"2", "before", 0o644)
			must(t, os.Remove(path))
			must(t, os.Symlink(path+"2", path))
		},
		"a directory": func(t *testing.T, path string) { must(t, os.Remove(path)); must(t, os.Mkdir(path, 0o755)) },
	} {
		t.Run(name, func(t *testing.T) {
			dir, j := home(t)
			path := filepath.Join(dir, "f")
			put(t, path, "before", 0o644)
			f, err := ReadUserFile(path, dir)
			must(t, err)
			meanwhile(t, path)
			_, err = j.WriteFile(f, []byte("ours"), "x")
			wantProblem(t, err, path)
			if text, err := os.ReadFile(path); err == nil && string(text) == "ours" {
				t.Error("the other program's change was overwritten")
			}
			if all, err := j.Changes(); err != nil || len(all) != 0 {
				t.Errorf("the journal contains a change that was not made: %+v, %v", all, err)
			}
		})
	}
	dir, j := home(t)
	path := filepath.Join(dir, "f")
	put(t, path, "before", 0o644)
	f, err := ReadUserFile(path, dir)
	must(t, err)
	change, err := j.WriteFile(f, []byte("ours"), "x")
	must(t, err)
	put(t, path, "theirs", 0o644)
	_, err = j.Undo(change.ID, nil)
	wantProblem(t, err, "was changed since", change.Backup)
	wantFile(t, path, "theirs", 0o644)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestDirectoryOfAnotherUser checks that no file is created in a directory of another user, as with sudo.
func TestDirectoryOfAnotherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give a directory away")
	}
	dir := t.TempDir()
	if err := os.Chown(dir, 12345, 12345); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadUserFile(filepath.Join(dir, "new", "file.json"), dir); err == nil || !strings.Contains(err.Error(), "belongs to another user") {
		t.Error(err)
	}
}
