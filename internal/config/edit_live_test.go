package config

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpproxy/internal/problem"
	"mcpproxy/internal/testutil/volume"
)

var plainServer = ServerEdit{Launch: Launch{Command: "y"}}

const one = `{
  "mcpServers": {
    "a": {"command": "x"}, // a
  },
}
`

func serverNames(c *Config) []string {
	var out []string
	for _, s := range c.Servers {
		out = append(out, s.Name)
	}
	return out
}

func TestEditIsTwoPhase(t *testing.T) {
	f := open(t, one)
	var journal []string
	seen := func(when string, c *Config) {
		journal = append(journal, fmt.Sprintf("%s %v, live %v, in the file: %v", when, serverNames(c), serverNames(f.Current()), strings.Contains(contents(t, f.path), `"b"`)))
	}
	refusal := errors.New("the port is taken")
	f.components = []ReloadableComponent{hooks{
		prepare: func(c *Config) error { seen("prepare", c); return refusal },
		commit:  func(c *Config) { seen("commit", c) },
	}}
	err := f.AddServers(nil, NamedEdit{"b", plainServer})
	if err == nil || err.Error() != "The configuration cannot be applied: the port is taken" || contents(t, f.path) != one || f.LastError() != nil {
		t.Errorf("after a component rejected the change: %v, %v\n%s", err, f.LastError(), contents(t, f.path))
	}
	refusal = nil
	if err := f.AddServers(nil, NamedEdit{"b", plainServer}); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"prepare [a b], live [a], in the file: false",
		"prepare [a b], live [a], in the file: false",
		"commit [a b], live [a b], in the file: true",
	}
	if diff := cmp.Diff(want, journal); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff(Change{Keys: []string{"mcpServers.b"}}, f.next(t)); diff != "" || len(f.changes) != 0 {
		t.Errorf("observed change: -want +got:\n%s", diff)
	}
}

// hooks is a component whose methods are functions.
type hooks struct {
	prepare func(*Config) error
	commit  func(*Config)
}

func (h hooks) PrepareConfig(next *Config) (func(), error) {
	if err := h.prepare(next); err != nil {
		return nil, err
	}
	return func() { h.commit(next) }, nil
}

// TestUserSavesDuringAnEdit checks that both changes are in the file, and applied, if a user saves the file during an
// edit.
func TestUserSavesDuringAnEdit(t *testing.T) {
	f := open(t, one)
	saved := false
	f.components = []ReloadableComponent{hooks{
		prepare: func(*Config) error {
			if !saved {
				write(t, f.path, strings.Replace(one, "{\n", "{\n  \"tools_limit\": 7, // by hand\n", 1))
				saved = true
			}
			return nil
		},
		commit: func(*Config) {},
	}}
	if err := f.AddServers(nil, NamedEdit{"b", plainServer}); err != nil {
		t.Fatal(err)
	}
	want := "{\n  \"tools_limit\": 7, // by hand\n  \"mcpServers\": {\n    \"a\": {\"command\": \"x\"}, // a\n    \"b\": {\"command\": \"y\"},\n  },\n}\n"
	if diff := cmp.Diff(want, contents(t, f.path)); diff != "" || f.Current().ToolsLimit != 7 || len(f.Current().Servers) != 2 {
		t.Errorf("current configuration: %v\n-want +got:\n%s", f.Current(), diff)
	}
	// An edit does not overwrite the file of a user who saves continuously, either.
	n := 0
	f.components = []ReloadableComponent{hooks{
		prepare: func(*Config) error { n++; write(t, f.path, limit(n%100+1)); return nil },
		commit:  func(*Config) { t.Error("committed") },
	}}
	err := f.AddServers(nil, NamedEdit{"c", plainServer})
	if p := problem.From(err); err == nil || p.Code != problem.Conflict || contents(t, f.path) != limit(n%100+1) {
		t.Errorf("got %v\n%s", err, contents(t, f.path))
	}
}

// TestEditOfAnInvalidFile checks that an edit of an invalid file is rejected and does not change the file.
func TestEditOfAnInvalidFile(t *testing.T) {
	f := open(t, one)
	bad := strings.Replace(one, "command", "comand", 1)
	write(t, f.path, bad)
	err := f.AddServers(nil, NamedEdit{"b", plainServer})
	if err == nil || !strings.HasPrefix(err.Error(), "mcp_config.json:3:5: the server has neither") || contents(t, f.path) != bad || len(f.Current().Servers) != 1 {
		t.Errorf("got %v\n%s", err, contents(t, f.path))
	}
	if err := os.Remove(f.path); err != nil {
		t.Fatal(err)
	}
	if err := f.AddServers(nil, NamedEdit{"b", plainServer}); err == nil || !strings.Contains(err.Error(), "is missing") || contents(t, f.path) != "" {
		t.Errorf("edit after the file was deleted: %v", err)
	}
}

// TestWatchIgnoresOwnEdits checks that the watch neither applies nor reverts a file that an edit wrote.
func TestWatchIgnoresOwnEdits(t *testing.T) {
	f := open(t, one)
	var mu sync.Mutex
	var applied [][]string
	f.run(t, follower(func(c *Config) {
		mu.Lock()
		defer mu.Unlock()
		applied = append(applied, serverNames(c))
	}))
	write(t, f.path, strings.Replace(one, "{\n", "{\n  \"tools_limit\": 6,\n", 1))
	f.until(t, func() bool { return f.Current().ToolsLimit == 6 }) // Run follows
	mu.Lock()
	applied = nil
	mu.Unlock()
	var want [][]string
	for i := range 10 {
		if err := f.AddServers(nil, NamedEdit{fmt.Sprint("s", i), plainServer}); err != nil {
			t.Fatal(err)
		}
		want = append(want, serverNames(f.Current()))
	}
	last := strings.Replace(contents(t, f.path), "6", "7", 1)
	write(t, f.path, last)
	f.until(t, func() bool { return f.Current().ToolsLimit == 7 })
	want = append(want, want[len(want)-1])
	mu.Lock()
	defer mu.Unlock()
	if diff := cmp.Diff(want, applied); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestEditsRace makes many edits at once while the watch runs and a user saves. No edit is lost, and the file is the
// current configuration.
func TestEditsRace(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: many concurrent edits")
	}
	f := open(t, one)
	f.run(t)
	const editors = 4
	each := volume.FullOrQuick(10, 5)
	var running sync.WaitGroup
	for e := range editors {
		running.Go(func() {
			for i := range each {
				name := fmt.Sprintf("s%d-%d", e, i)
				if err := f.AddServers(nil, NamedEdit{name, plainServer}); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				if i%2 == 1 {
					if err := f.SetServer(nil, name, "enabled", json.RawMessage("false")); err != nil {
						t.Errorf("%s: %v", name, err)
					}
				}
				if i%5 == 4 {
					if err := f.RemoveServer(name); err != nil {
						t.Errorf("%s: %v", name, err)
					}
				}
				_ = f.Reload()
			}
		})
	}
	running.Wait()
	c := mustParse(t, contents(t, f.path))
	if !cmp.Equal(c, f.Current(), exported) || len(c.Servers) != 1+editors*each*4/5 {
		t.Errorf("%d servers: %s", len(c.Servers), cmp.Diff(c, f.Current(), exported))
	}
	for _, s := range c.Servers {
		if want := s.Name == "a" || strings.ContainsAny(s.Name[len(s.Name)-1:], "02468"); s.Enabled != want {
			t.Errorf("%s: enabled is %v", s.Name, s.Enabled)
		}
	}
}

func TestEditedFileIsPrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no file modes")
	}
	dir := filepath.Join(t.TempDir(), "new")
	l, err := OpenLiveConfig(filepath.Join(dir, FileName), Options{Lookup: env})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.AddServers(nil, NamedEdit{"b", plainServer}); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]os.FileMode{l.Path(): 0o600, dir: 0o700} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	if err := os.Chmod(l.Path(), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := l.RemoveServer("b"); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(l.Path()); err != nil || info.Mode().Perm() != 0o600 || l.Warnings() != nil {
		t.Errorf("%v, %v, %q", info.Mode(), err, l.Warnings())
	}
}

// TestEditThroughASymlink checks that a configuration file that is a symbolic link stays one.
func TestEditThroughASymlink(t *testing.T) {
	dir := t.TempDir()
	real := filepath.Join(dir, "dotfiles.json")
	write(t, real, one)
	link := filepath.Join(dir, FileName)
	if err := os.Symlink("dotfiles.json", link); err != nil {
		t.Skip(err)
	}
	l, err := OpenLiveConfig(link, Options{Lookup: env})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.AddServers(nil, NamedEdit{"b", plainServer}); err != nil {
		t.Fatal(err)
	}
	if target, err := os.Readlink(link); err != nil || target != "dotfiles.json" || !strings.Contains(contents(t, real), `"b"`) {
		t.Errorf("%q, %v\n%s", target, err, contents(t, real))
	}
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("nowhere.json", link); err != nil {
		t.Fatal(err)
	}
	if l, err = OpenLiveConfig(link, Options{Lookup: env}); err != nil {
		t.Fatal(err)
	}
	if err := l.AddServers(nil, NamedEdit{"b", plainServer}); err == nil || !strings.Contains(err.Error(), "a link to a file that does not exist") {
		t.Errorf("got %v", err)
	}
}

func TestFileThatCannotBeWritten(t *testing.T) {
	f := open(t, one)
	// A directory that is not empty occupies the path of the temporary file.
	if err := os.MkdirAll(filepath.Join(filepath.Dir(f.path), "."+FileName+".tmp", "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	f.components = []ReloadableComponent{hooks{func(*Config) error { return nil }, func(*Config) { t.Error("committed") }}}
	err := f.AddServers(nil, NamedEdit{"b", plainServer})
	if p := problem.From(err); err == nil || p.Code != problem.InvalidConfig || !strings.Contains(p.Message, "cannot be written") || contents(t, f.path) != one || len(f.Current().Servers) != 1 {
		t.Errorf("got %v\n%s", err, contents(t, f.path))
	}
}

const envChild = "MCPPROXY_TEST_EDITS"

// TestKilledWhileEditing kills the editing process at any moment. The file is complete, old or new, and the next edit
// removes the temporary files.
func TestKilledWhileEditing(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: starts and kills processes")
	}
	if path := os.Getenv(envChild); path != "" {
		editForever(path)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, FileName)
	write(t, path, one)
	random := rand.New(rand.NewPCG(volume.Seed(t, 1), 0))
	for range volume.FullOrQuick(6, 3) {
		read, write, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		child, err := os.StartProcess(os.Args[0], []string{os.Args[0], "-test.run=^TestKilledWhileEditing$"},
			&os.ProcAttr{Env: append(os.Environ(), envChild+"="+path), Files: []*os.File{nil, write, os.Stderr}})
		_ = write.Close()
		if err != nil {
			t.Fatal(err)
		}
		progress := bufio.NewReader(read)
		for range 1 + random.IntN(8) {
			if _, err := progress.ReadByte(); err != nil {
				t.Fatal(err)
			}
		}
		_ = child.Kill()
		_, _ = child.Wait()
		_ = read.Close()
		got := mustParse(t, contents(t, path))
		if !slices.Equal(serverNames(got), []string{"a"}) && !slices.Equal(serverNames(got), []string{"a", "b"}) {
			t.Fatalf("the file contains the servers %v", serverNames(got))
		}
	}
	l, err := OpenLiveConfig(path, Options{Lookup: env})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.AddServers(nil, NamedEdit{"c", plainServer}); err != nil {
		t.Fatal(err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".*")); err != nil || len(left) != 0 {
		t.Errorf("leftover temporary files: %q, %v", left, err)
	}
}

// editForever adds and removes a server repeatedly, and prints a line for each edit.
func editForever(path string) {
	l, err := OpenLiveConfig(path, Options{Lookup: env})
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go l.Run(ctx)
	for {
		if l.RemoveServer("b") != nil {
			if err := l.AddServers(nil, NamedEdit{"b", ServerEdit{Launch: Launch{Command: "y", Args: slices.Repeat([]string{"argument"}, 4_000)}}}); err != nil {
				panic(err)
			}
		}
		fmt.Print(".")
	}
}

// TestManyMembers checks that the number of members in a change is limited, and that a change is made completely or
// not at all.
func TestManyMembers(t *testing.T) {
	volume.SkipUnderRace(t)
	f := open(t, `{"mcpServers": {"a": {"command": "x"}}}`)
	members := func(n int, last string) json.RawMessage {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"V%d":"1",`, i)
		}
		return json.RawMessage("{" + b.String() + last + "}")
	}
	before := contents(t, f.path)
	for last, says := range map[string]string{`"V256":"1"`: "the limit is 256", `"A=B":"1"`: "the limit is 256"} {
		if err := f.SetServer(nil, "a", "env", members(maxSettings, last)); err == nil || !strings.Contains(err.Error(), says) || contents(t, f.path) != before {
			t.Errorf("got %v", err)
		}
	}
	if err := f.SetServer(nil, "a", "env", members(10, `"A=B":"1"`)); err == nil || contents(t, f.path) != before || len(f.Current().Server("a").Env) != 0 {
		t.Errorf("a part of the change was made: %v\n%s", err, contents(t, f.path))
	}
	if err := f.SetServer(nil, "a", "env", members(maxSettings-1, `"B":"1"`)); err != nil || len(f.Current().Server("a").Env) != maxSettings {
		t.Errorf("got %v", err)
	}
}
