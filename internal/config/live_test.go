package config

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"mcpproxy/internal/problem"
	"mcpproxy/internal/testutil/volume"
)

// Reload reads the file, prepares all components, swaps and commits; on any
// failure nothing changes.
func (l *LiveConfig) Reload() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.applyContent(l.readFile())
}

func TestMain(m *testing.M) {
	volume.ConfigureRapid()
	goleak.VerifyTestMain(m)
}

// fixture is a file and the LiveConfig that follows it.
type fixture struct {
	*LiveConfig
	path    string
	changes chan Change
}

// open opens a file with the text, or without a file if text is empty.
func open(t *testing.T, text string, set ...func(*Options)) *fixture {
	t.Helper()
	f := &fixture{path: filepath.Join(t.TempDir(), FileName), changes: make(chan Change, 10_000)}
	if text != "" {
		write(t, f.path, text)
	}
	opt := Options{Lookup: env, Observe: func(c Change) { f.changes <- c }}
	for _, s := range set {
		s(&opt)
	}
	live, err := OpenLiveConfig(f.path, opt)
	if err != nil {
		t.Fatal(err)
	}
	live.settleTime = 10 * time.Millisecond
	f.LiveConfig = live
	return f
}

// run runs the LiveConfig until the test ends.
func (f *fixture) run(t *testing.T, components ...ReloadableComponent) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { f.Run(ctx, components...) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
}

// next returns the next change.
func (f *fixture) next(t *testing.T) Change {
	t.Helper()
	select {
	case c := <-f.changes:
		return c
	case <-time.After(2 * time.Minute):
		t.Fatal("no change was observed")
		return Change{}
	}
}

// until waits until a condition holds after some change.
func (f *fixture) until(t *testing.T, holds func() bool) {
	t.Helper()
	for !holds() {
		f.next(t)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func limit(n int) string { return fmt.Sprintf(`{"tools_limit": %d}`, n) }

// part is a component that records its calls.
type part struct {
	name    string
	refuse  error
	journal *[]string
	live    *LiveConfig
}

func (p *part) PrepareConfig(next *Config) (func(), error) {
	*p.journal = append(*p.journal, fmt.Sprintf("prepare %s %d", p.name, next.ToolsLimit))
	if p.refuse != nil {
		return nil, p.refuse
	}
	return func() {
		*p.journal = append(*p.journal, fmt.Sprintf("commit %s %d", p.name, p.live.Current().ToolsLimit))
	}, nil
}

func TestReloadIsTwoPhase(t *testing.T) {
	f := open(t, limit(1))
	var journal []string
	a, b := &part{"a", nil, &journal, f.LiveConfig}, &part{"b", errors.New("the port is taken"), &journal, f.LiveConfig}
	f.components = []ReloadableComponent{a, b, nothing{}}
	write(t, f.path, limit(2))
	err := f.Reload()
	if err == nil || err.Error() != "The configuration cannot be applied: the port is taken" || f.LastError() != err || f.Current().ToolsLimit != 1 {
		t.Errorf("after a component rejected the change: %v, %v, %d", err, f.LastError(), f.Current().ToolsLimit)
	}
	if c := f.next(t); c.Err != err || c.Keys != nil {
		t.Errorf("observed %+v", c)
	}
	b.refuse = nil
	if err := f.Reload(); err != nil || f.LastError() != nil {
		t.Errorf("got %v, %v", err, f.LastError())
	}
	if diff := cmp.Diff(Change{Keys: []string{"tools_limit"}}, f.next(t)); diff != "" {
		t.Errorf("observed change: -want +got:\n%s", diff)
	}
	want := []string{"prepare a 2", "prepare b 2", "prepare a 2", "prepare b 2", "commit a 2", "commit b 2"}
	if diff := cmp.Diff(want, journal); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

type nothing struct{}

func (nothing) PrepareConfig(*Config) (func(), error) { return nil, nil }

// TestProblemOfAComponent checks that a problem that a component returns keeps its code.
func TestProblemOfAComponent(t *testing.T) {
	f := open(t, limit(1))
	p := problem.New(problem.Overloaded, "Too many servers.", "Take some out.")
	f.components = []ReloadableComponent{&part{"a", fmt.Errorf("wrapped: %w", p), new([]string), f.LiveConfig}}
	write(t, f.path, limit(2))
	if err := f.Reload(); !errors.Is(err, p) {
		t.Errorf("got %v", err)
	}
}

func TestComponentsGetChangesBeforeRun(t *testing.T) {
	f := open(t, limit(1))
	write(t, f.path, limit(2))
	if err := f.Reload(); err != nil {
		t.Fatal(err)
	}
	var journal []string
	f.setComponents([]ReloadableComponent{&part{"a", nil, &journal, f.LiveConfig}})
	if want := []string{"prepare a 2", "commit a 2"}; !slices.Equal(journal, want) {
		t.Errorf("got %q", journal)
	}
	write(t, f.path, limit(3))
	f.run(t)
	f.until(t, func() bool { return f.Current().ToolsLimit == 3 })
}

func TestEditors(t *testing.T) {
	f := open(t, limit(1))
	f.run(t)
	for i, save := range []func(text string){
		func(text string) { write(t, f.path, text) }, // truncates, writes
		func(text string) { // writes another file, renames it
			replace(t, f.path, text)
		},
		func(text string) { // moves the old one away, writes a new one
			rename(t, f.path, f.path+"~")
			write(t, f.path, text)
		},
		func(text string) { // removes, writes
			if err := os.Remove(f.path); err != nil {
				t.Fatal(err)
			}
			write(t, f.path, text)
		},
		func(text string) { // writes slowly, in pieces
			file, err := os.Create(f.path)
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			for _, b := range []byte(text) {
				if _, err := file.Write([]byte{b}); err != nil {
					t.Fatal(err)
				}
			}
		},
		func(text string) { write(t, f.path, text) },
	} {
		save(limit(10 + i))
		f.until(t, func() bool { return f.Current().ToolsLimit == 10+i && f.LastError() == nil })
	}
}

// replace writes a complete text to another file and renames it.
func replace(t *testing.T, path, text string) {
	t.Helper()
	write(t, path+".tmp", text)
	rename(t, path+".tmp", path)
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

func TestBadFileChangesNothing(t *testing.T) {
	f := open(t, limit(1))
	f.run(t)
	// Each text is replaced atomically, because a file that is truncated first and written later would be reported
	// separately.
	replace(t, f.path, `{"tools_limit": 2, "lisen": 5}`)
	c := f.next(t)
	if c.Err == nil || c.Err.Error() != `mcp_config.json:1:20: unknown key "lisen" (did you mean "listen"?)` || f.LastError() != c.Err || f.Current().ToolsLimit != 1 {
		t.Errorf("got %v, %v, %d", c.Err, f.LastError(), f.Current().ToolsLimit)
	}
	replace(t, f.path, `{"tools_limit": 2, "mcpServers": {"a": {"comm`) // half-written
	if c := f.next(t); c.Err == nil || f.Current().ToolsLimit != 1 {
		t.Errorf("got %v, %d", c.Err, f.Current().ToolsLimit)
	}
	replace(t, f.path, `{"tools_limit": 2, "mcpServers": {"a": {"command": "x"}}}`)
	want := Change{Keys: []string{"tools_limit", "mcpServers.a"}}
	if diff := cmp.Diff(want, f.next(t)); diff != "" || f.LastError() != nil {
		t.Errorf("%v: -want +got:\n%s", f.LastError(), diff)
	}
}

// TestListenersSeeTheNewState checks that a listener that is notified of a change sees the new text and no earlier
// mistake.
func TestListenersSeeTheNewState(t *testing.T) {
	var f *fixture
	told := 0
	f = open(t, limit(1), func(o *Options) {
		o.Observe = func(c Change) {
			if told++; f.LastError() != c.Err || f.Current().ToolsLimit == 2 && string(f.AppliedText().Data) != limit(2) {
				t.Errorf("observed %+v; the last error is %v, the applied text is %s", c, f.LastError(), f.AppliedText().Data)
			}
		}
	})
	for _, text := range []string{"{", limit(2)} {
		write(t, f.path, text)
		_ = f.Reload() // notifies the listener
	}
	if told != 2 {
		t.Errorf("notified %d times", told)
	}
}

func TestOnlyChangesAreReported(t *testing.T) {
	a := `"a": {"command": "x", "args": ["1"]}`
	f := open(t, `{"mcpServers": {`+a+`, "b": {"command": "y"}, "c.d": {"command": "z"}}}`)
	for _, step := range []struct {
		text string
		want []string
	}{
		{`{"mcpServers": {/* more */ ` + a + `, "b": {"command": "y"}, "c.d": {"command": "z"}}, "trusted_hosts": []}`, nil},
		{`{"mcpServers": {` + a + `, "b": {"command": "y2"}, "e": {"command": "z"}}}`, []string{"mcpServers.b", `mcpServers["c.d"]`, "mcpServers.e"}},
		{`{"mcpServers": {"b": {"command": "y2"}, ` + a + `, "e": {"command": "z"}}}`, []string{"mcpServers"}},
		{`{"mcpServers": {` + a + `}, "log": {"level": "debug"}, "intent_declaration": {"require_intent": true}}`,
			[]string{"intent_declaration.require_intent", "log.level", "mcpServers.b", "mcpServers.e"}},
	} {
		write(t, f.path, step.text)
		if err := f.Reload(); err != nil {
			t.Fatal(err)
		}
		var got []string
		if len(f.changes) > 0 {
			got = f.next(t).Keys
		}
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", step.text, diff)
		}
	}
}

func TestFileAppearsLater(t *testing.T) {
	f := open(t, "")
	if diff := cmp.Diff(mustParse(t, "{}"), f.Current(), exported); diff != "" {
		t.Errorf("no file: %s", diff)
	}
	f.run(t)
	write(t, f.path, limit(7))
	f.until(t, func() bool { return f.Current().ToolsLimit == 7 })
}

func TestDirectoryAppearsLater(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sub")
	changes := make(chan Change, 100)
	l, err := OpenLiveConfig(filepath.Join(dir, FileName), Options{Lookup: env, Observe: func(c Change) { changes <- c }})
	if err != nil {
		t.Fatal(err)
	}
	l.settleTime, l.pollInterval = time.Millisecond, 10*time.Millisecond
	f := &fixture{l, l.Path(), changes}
	f.run(t)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, f.path, limit(7))
	f.until(t, func() bool { return f.Current().ToolsLimit == 7 })
}

// TestLinks checks that periodic checks find changes that no watch reports.
func TestLinks(t *testing.T) {
	dir := t.TempDir()
	for i, name := range []string{"one", "two"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name, FileName), limit(i+1))
	}
	link := filepath.Join(dir, "now")
	if err := os.Symlink("one", link); err != nil {
		t.Skip(err)
	}
	changes := make(chan Change, 100)
	l, err := OpenLiveConfig(filepath.Join(link, FileName), Options{Lookup: env, Observe: func(c Change) { changes <- c }})
	if err != nil {
		t.Fatal(err)
	}
	l.settleTime, l.pollInterval = time.Millisecond, 10*time.Millisecond
	f := &fixture{l, l.Path(), changes}
	f.run(t)
	if err := os.Symlink("two", link+"~"); err != nil {
		t.Fatal(err)
	}
	rename(t, link+"~", link)
	f.until(t, func() bool { return f.Current().ToolsLimit == 2 })
}

func TestFileIsDeleted(t *testing.T) {
	f := open(t, limit(5))
	f.run(t)
	if err := os.Remove(f.path); err != nil {
		t.Fatal(err)
	}
	if c := f.next(t); c.Err == nil || !strings.HasSuffix(c.Err.Error(), "is missing; the previous configuration stays active.") || f.Current().ToolsLimit != 5 {
		t.Errorf("got %v, %d", c.Err, f.Current().ToolsLimit)
	}
	write(t, f.path, limit(5))
	for f.LastError() != nil {
		if err := f.Reload(); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(f.path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(f.path, 0o700); err != nil {
		t.Fatal(err)
	}
	f.until(t, func() bool {
		return f.LastError() != nil && strings.HasSuffix(f.LastError().Error(), "cannot be read: it is not a file")
	})
}

func TestNeedsRestart(t *testing.T) {
	f := open(t, "{}")
	for _, step := range []struct {
		text string
		want []string
	}{
		{`{"listen": "127.0.0.1:9000", "log": {"level": "debug", "format": "json"}, "tools_limit": 5}`, []string{"listen", "log.format"}},
		{`{"listen": "127.0.0.1:9000", "log": {"level": "debug", "format": "json"}, "tools_limit": 6}`, []string{"listen", "log.format"}},
		{`{"data_dir": "/srv", "api_key": "0123456789abcdef"}`, []string{"data_dir", "api_key"}},
		{`{"tools_limit": 5}`, nil},
	} {
		write(t, f.path, step.text)
		if err := f.Reload(); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step.want, f.NeedsRestart()); diff != "" {
			t.Errorf("%s: -want +got:\n%s", step.text, diff)
		}
		if diff := cmp.Diff(step.want, f.next(t).NeedsRestart); diff != "" {
			t.Errorf("%s: observed -want +got:\n%s", step.text, diff)
		}
	}
}

func TestFlagsOutrankTheFile(t *testing.T) {
	f := open(t, `{"listen": "127.0.0.1:9000", "data_dir": "/srv"}`, func(o *Options) { o.Listen, o.DataDir = "127.0.0.1:0", "~/data" })
	if c := f.Current(); c.Listen != "127.0.0.1:0" || c.DataDir != "/home/me/data" {
		t.Errorf("got %s, %s", c.Listen, c.DataDir)
	}
	write(t, f.path, `{"listen": "127.0.0.1:9001", "data_dir": "/srv2", "tools_limit": 2}`)
	if err := f.Reload(); err != nil {
		t.Fatal(err)
	}
	if c, wait := f.Current(), f.NeedsRestart(); c.Listen != "127.0.0.1:0" || c.DataDir != "/home/me/data" || wait != nil || c.ToolsLimit != 2 {
		t.Errorf("got %s, %s, %q", c.Listen, c.DataDir, wait)
	}
	for listen, want := range map[string]string{
		"0.0.0.0:80": `--listen: 0.0.0.0:80 is not a loopback address, so other machines can connect (listen on 127.0.0.1, or set "require_mcp_auth": true in mcp_config.json)`,
		"80":         "--listen: listen must be address:port (such as 127.0.0.1:8080)",
	} {
		if _, err := OpenLiveConfig(f.path, Options{Lookup: env, Listen: listen}); err == nil || err.Error() != want || problem.From(err).Code != problem.Usage {
			t.Errorf("--listen %s: got %v", listen, err)
		}
	}
}

// TestKeyIsRequiredUntilTheRestart checks that a listener that other machines can reach requires the key until the
// restart.
func TestKeyIsRequiredUntilTheRestart(t *testing.T) {
	f := open(t, `{"listen": "0.0.0.0:9000", "require_mcp_auth": true}`)
	write(t, f.path, `{"listen": "127.0.0.1:9000"}`)
	if err := f.Reload(); err == nil || !f.Current().RequireMCPAuth {
		t.Errorf("got %v, %v", err, f.Current())
	}
	write(t, f.path, `{"listen": "127.0.0.1:9000", "require_mcp_auth": true}`)
	if err := f.Reload(); err != nil {
		t.Error(err)
	}
}

// TestNoFile checks that a missing file causes a warning only if the user named it.
func TestNoFile(t *testing.T) {
	home := t.TempDir()
	lookup := func(name string) (string, bool) {
		if name == "HOME" {
			return home, true
		}
		return "", false
	}
	l, err := OpenLiveConfig("", Options{Lookup: lookup})
	if err != nil {
		t.Fatal(err)
	}
	if w := l.Warnings(); len(w) != 0 {
		t.Errorf("warnings for no file at all: %q", w)
	}
	path := filepath.Join(home, "mcp_confg.json")
	if l, err = OpenLiveConfig(path, Options{Lookup: lookup}); err != nil {
		t.Fatal(err)
	}
	if w := l.Warnings(); len(w) != 1 || !strings.HasPrefix(w[0], path+" does not exist") {
		t.Errorf("warnings for a misspelt name: %q", w)
	}
}

func TestModeOfTheFile(t *testing.T) {
	f := open(t, limit(5))
	if w := f.Warnings(); w != nil {
		t.Errorf("warnings for 0600: %q", w)
	}
	if err := os.Chmod(f.path, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := f.Reload(); err != nil {
		t.Fatal(err)
	}
	if w := f.Warnings(); len(w) != 1 || !strings.Contains(w[0], "mode 0644") || !strings.Contains(w[0], "chmod 600 "+f.path) {
		t.Errorf("warnings for 0644: %q", w)
	}
	if err := os.Chmod(f.path, 0o600); err != nil {
		t.Fatal(err)
	}
	f.reloadIfChanged() // the text is unchanged
	if w := f.Warnings(); w != nil {
		t.Errorf("warnings after chmod: %q", w)
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	good := filepath.Join(dir, "good.json")
	write(t, good, "{}")
	bad := filepath.Join(dir, "bad.json")
	write(t, bad, `{"x": 1}`)
	for name, c := range map[string]struct {
		path, want string
		opt        Options
	}{
		"a bad file":           {bad, `bad.json:1:2: unknown key "x"`, Options{Lookup: env}},
		"a directory":          {dir, dir + " cannot be read: it is not a file", Options{Lookup: env}},
		"no home for the data": {good, "The home directory is unknown: HOME is not set.", Options{Lookup: func(string) (string, bool) { return "", false }}},
		"no home":              {"", "The home directory is unknown: HOME is not set.", Options{Lookup: func(string) (string, bool) { return "", false }}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := OpenLiveConfig(c.path, c.opt); err == nil || err.Error() != c.want {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

// TestStorm saves many files, some invalid or half-written, while others read. The current configuration is always
// one complete valid file, and in the end the last one.
func TestStorm(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: many concurrent saves")
	}
	file := func(n int) string {
		return fmt.Sprintf(`{"queue_size": %d, "max_concurrent_calls": %d, "mcpServers": {"same": {"command": "x"}, "other": {"command": "y", "args": ["%d"]}}}`, n, n, n)
	}
	f := open(t, file(0))
	f.settleTime = time.Millisecond
	var applied []int
	f.run(t, follower(func(c *Config) { applied = append(applied, c.QueueSize) }))
	ctx, stop := context.WithCancel(context.Background())
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for ctx.Err() == nil {
				if c := f.Current(); c.QueueSize != c.MaxConcurrent || c.Servers[1].Args[0] != fmt.Sprint(c.QueueSize) {
					t.Errorf("a mix of two files is applied: %v", c)
				}
				_, _ = f.LastError(), f.NeedsRestart()
				runtime.Gosched() // the readers must not starve the watch
			}
		})
	}
	saves := volume.FullOrQuick(500, 100)
	for n := 1; n <= saves; n++ {
		text := file(n)
		switch {
		case n == saves:
		case n%5 == 0:
			text = strings.Replace(text, "queue_size", "queue_sise", 1)
		case n%10 == 3:
			text = text[:len(text)/2]
		}
		if n%2 == 0 {
			replace(t, f.path, text)
		} else {
			write(t, f.path, text)
		}
		if n%7 == 0 {
			_ = f.Reload() // races with the watch on purpose
		}
	}
	f.until(t, func() bool { return f.Current().QueueSize == saves && f.LastError() == nil })
	stop()
	readers.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.IsSorted(applied) || len(applied) == 0 || applied[len(applied)-1] != saves {
		t.Errorf("applied out of order: %v", applied)
	}
	for len(f.changes) > 0 {
		if c := <-f.changes; slices.Contains(c.Keys, "mcpServers.same") {
			t.Error("an unchanged server is reported as changed")
		}
	}
}

type follower func(*Config)

func (f follower) PrepareConfig(next *Config) (func(), error) { return func() { f(next) }, nil }

func TestResolvePaths(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, FileName)
	with := func(more map[string]string) func(string) (string, bool) {
		return func(name string) (string, bool) {
			if v, ok := more[name]; ok {
				return v, true
			}
			return env(name)
		}
	}
	t.Run("file", func(t *testing.T) {
		for _, c := range []struct{ flag, variable, want string }{
			{"", "", "/home/me/.mcpproxy/mcp_config.json"},
			{"", "~/x.json", "/home/me/x.json"},
			{"/a/b.json", "~/x.json", "/a/b.json"},
		} {
			if got, err := ResolvePath(c.flag, with(map[string]string{EnvPath: c.variable})); err != nil || got != c.want {
				t.Errorf("%+v gives %q, %v", c, got, err)
			}
		}
	})
	t.Run("data", func(t *testing.T) {
		for _, c := range []struct{ flag, variable, text, want string }{
			{"", "", "", "/home/me/.mcpproxy"},
			{"", "", `{"data_dir": "/srv/x", "unknown": 1}`, "/srv/x"},
			{"", "", `{"data_dir": "${env:DIR}"}`, "/srv/data"},
			{"", "", `{"data_dir": "${env:NO}"}`, "/home/me/.mcpproxy"},
			{"", "", `{"data_dir": 5}`, "/home/me/.mcpproxy"},
			{"", "", `[`, "/home/me/.mcpproxy"},
			{"", "/var/x", `{"data_dir": "/srv/x"}`, "/var/x"},
			{"~/y", "/var/x", `{"data_dir": "/srv/x"}`, "/home/me/y"},
		} {
			write(t, file, c.text)
			if got, err := ResolveDataDir(c.flag, file, with(map[string]string{EnvDataDir: c.variable})); err != nil || got != c.want {
				t.Errorf("%+v gives %q, %v", c, got, err)
			}
		}
	})
	t.Run("working directory", func(t *testing.T) {
		t.Chdir(dir)
		write(t, file, limit(3))
		l, err := OpenLiveConfig("", Options{Lookup: with(map[string]string{"HOME": t.TempDir()})})
		if err != nil || l.Current().ToolsLimit != 10 {
			t.Errorf("the file in the working directory is used: %v", err)
		}
	})
}

func TestNoHome(t *testing.T) {
	none := func(string) (string, bool) { return "", false }
	if c, err := Parse([]byte(`{"data_dir": "/srv"}`), none); err != nil || c.DataDir != "/srv" {
		t.Errorf("got %v", err)
	}
	_, err := Parse([]byte(`{"data_dir": "~/x", "mcpServers": {"a": {"command": "x", "cwd": "~/y"}}}`), none)
	want := "mcp_config.json: ~ is the home directory, but HOME is not set (write an absolute path)\n" +
		"mcp_config.json:1:14: ~ is the home directory, but HOME is not set (write an absolute path)"
	if err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

// TestEmptiedFileIsWaitedFor checks that a file that an editor has emptied and not written yet changes nothing.
func TestEmptiedFileIsWaitedFor(t *testing.T) {
	f := open(t, limit(1))
	f.settleTime = 500 * time.Millisecond // Run waits ten times as long, so that a slow writer is not missed
	f.run(t)
	write(t, f.path, "")
	time.AfterFunc(f.settleTime*6/5, func() { _ = os.WriteFile(f.path, []byte(limit(2)), 0o600) })
	if c := f.next(t); c.Err != nil || f.Current().ToolsLimit != 2 {
		t.Errorf("got %v, %d", c.Err, f.Current().ToolsLimit)
	}
}

// TestDeletingALaterFile checks that a file that was created while MCPProxy runs can be deleted like any other. Its
// last content still applies.
func TestDeletingALaterFile(t *testing.T) {
	f := open(t, "")
	f.run(t)
	write(t, f.path, limit(5))
	f.until(t, func() bool { return f.Current().ToolsLimit == 5 })
	if err := os.Remove(f.path); err != nil {
		t.Fatal(err)
	}
	f.until(t, func() bool { return f.LastError() != nil || f.Current().ToolsLimit != 5 })
	if err := f.LastError(); err == nil || !strings.HasSuffix(err.Error(), "is missing; the previous configuration stays active.") || f.Current().ToolsLimit != 5 {
		t.Errorf("got %v, %d", err, f.Current().ToolsLimit)
	}
}

// TestFrequentlyTouchedFileIsRead checks that a file that is touched continuously is still read.
func TestFrequentlyTouchedFileIsRead(t *testing.T) {
	f := open(t, limit(1))
	f.settleTime = 100 * time.Millisecond
	f.run(t)
	write(t, f.path, limit(2))
	for began := time.Now(); f.Current().ToolsLimit != 2; {
		if time.Since(began) > time.Minute {
			t.Fatal("the file is not read while it is touched continuously")
		}
		now := time.Now()
		if err := os.Chtimes(f.path, now, now); err != nil {
			t.Fatal(err)
		}
		select {
		case <-f.changes:
		case <-time.After(f.settleTime / 20):
		}
	}
}
