package sandbox

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"mcpproxy/internal/upstream/process"
)

// suggestWorld is a home folder with notes, a database and keys.
func suggestWorld(t *testing.T) (home string, s *System) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("a sandbox needs Linux")
	}
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"notes/a.txt", "data/my.db", ".ssh/id_ed25519", ".config/tool/config.json", "app/config.json", "mcpproxy/db"} {
		write(t, filepath.Join(home, file), "")
	}
	return home, &System{private: []string{filepath.Join(home, "mcpproxy")}, probe: func() machineSupport { return machineSupport{"linux", 7, true, true} }}
}

// TestSuggestFromLaunch checks what the arguments and the environment alone propose. {} is the home folder.
func TestSuggestFromLaunch(t *testing.T) {
	for line, want := range map[string]string{
		"npx -y @scope/server {}/notes":                   "read=[{}/notes] write=[] none",
		"npx --registry https://r.example srv":            "read=[] write=[] none",
		"node {}/app/server.js --root={}/notes":           "read=[{}/notes] write=[] none",
		"uvx mcp-sqlite --db-path {}/data/my.db":          "read=[{}/data/my.db] write=[] none",
		"uvx mcp-sqlite --db-path {}/data/new.db":         "read=[] write=[{}/data] none",
		"srv sqlite://{}/data/my.db":                      "read=[{}/data/my.db] write=[] none",
		"srv postgres://localhost/x":                      "read=[] write=[] all",
		"srv --key={}/.ssh/id_ed25519":                    "read=[] write=[] none left: is a secret",
		"srv {}":                                          "read=[] write=[] none left: contains the home folder",
		"srv /":                                           "read=[] write=[] none left: contains the home folder",
		"srv {}/.config":                                  "read=[] write=[] none left: contains secrets",
		"srv {}/mcpproxy/db":                              "read=[] write=[] none left: belongs to MCPProxy",
		"srv /var/tmp":                                    "read=[] write=[] none left: many programs share it",
		"srv --shell /bin/sh --cache-of=/usr/bin":         "read=[] write=[] none",
		"srv /no/such/path /api":                          "read=[] write=[] none",
		"srv ROOTS={}/notes:{}/data":                      "read=[] write=[] none",
		"env:ROOTS={}/notes:{}/data srv":                  "read=[{}/notes {}/data] write=[] none",
		"env:GITHUB_TOKEN=x srv":                          "read=[] write=[] all",
		"env:PATH={}/notes env:UV_CACHE_DIR={}/notes srv": "read=[] write=[] none",
		"srv {}/notes {}/notes/a.txt":                     "read=[{}/notes] write=[] none",
	} {
		home, s := suggestWorld(t)
		c := process.Command{Env: map[string]string{"HOME": home}}
		for _, word := range strings.Fields(strings.ReplaceAll(line, "{}", home)) {
			if kv, ok := strings.CutPrefix(word, "env:"); ok {
				name, value, _ := strings.Cut(kv, "=")
				c.Env[name] = value
			} else if c.Name == "" {
				c.Name = word
			} else {
				c.Args = append(c.Args, word)
			}
		}
		c.Env["HOME"] = home
		found, err := s.Suggest(c, Rules{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		want, left, isLeft := strings.Cut(want, " left: ")
		got := "read=[" + strings.Join(found.Rules.Read, " ") + "] write=[" + strings.Join(found.Rules.Write, " ") + "] " + string(found.Rules.Network)
		if got = strings.ReplaceAll(got, home, "{}"); got != want || found.Rules.Mode != Strict || found.Ready {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
		if all := strings.Join(found.LeftOut, "\n"); isLeft != (all != "") || !strings.Contains(all, left) {
			t.Errorf("%s: left out %q, want %q", line, all, left)
		}
	}
}

// TestSuggestFromTrials checks what trial runs add. try plays a server that stops at the first denial.
func TestSuggestFromTrials(t *testing.T) {
	home, s := suggestWorld(t)
	in := func(path string) string { return filepath.Join(home, path) }
	command := process.Command{Name: "/bin/sh", Args: []string{in("notes"), "--config", in("app/config.json")}, Env: map[string]string{"HOME": home}}
	type step struct {
		has    func(Rules) bool
		output string
	}
	reads := func(path string) func(Rules) bool {
		return func(r Rules) bool {
			return slices.ContainsFunc(slices.Concat(r.Read, r.Write), func(p string) bool { return isWithin(path, p) })
		}
	}
	writes := func(path string) func(Rules) bool {
		return func(r Rules) bool { return slices.Contains(r.Write, path) }
	}
	network := func(r Rules) bool { return r.Network == AllNetwork }
	for name, c := range map[string]struct {
		steps            []step
		writer, reacher  string
		want             Rules
		ready            bool
		leftOut, failure string
	}{
		"nothing is missing": {ready: true, want: Rules{Mode: Strict, Read: []string{in("notes"), in("app/config.json")}, Network: NoNetwork}},
		"node, Python and Go": {steps: []step{
			{reads(in("data/my.db")), "Error: EACCES: permission denied, open '" + in("data/my.db") + "'"},
			{reads(in(".config/tool/config.json")), "PermissionError: [Errno 13] Permission denied: '" + in(".config/tool/config.json") + "'"},
			{writes(in("data")), "2026/11/30 mkdir " + in("data/x") + ": read-only file system"},
			{network, "Error: getaddrinfo EAI_AGAIN example.com"},
		}, ready: true, want: Rules{Mode: Strict, Read: []string{in("notes"), in("app/config.json"), in(".config/tool/config.json")}, Write: []string{in("data")}, Network: AllNetwork}},
		"a secret": {steps: []step{{reads(in(".ssh/id_ed25519")), "EACCES: permission denied, open '" + in(".ssh/id_ed25519") + "'"}},
			failure: "exit status 1", leftOut: "secret", want: Rules{Mode: Strict, Read: []string{in("notes"), in("app/config.json")}, Network: NoNetwork}},
		"a path that the server makes up": {steps: []step{{writes("/etc"), "EROFS: read-only file system, open '/etc/passwd'\nEACCES: permission denied, scandir '/proc/1'"}},
			failure: "exit status 1", leftOut: "belongs to the system", want: Rules{Mode: Strict, Read: []string{in("notes"), in("app/config.json")}, Network: NoNetwork}},
		"silent without a network":   {steps: []step{{network, ""}}, ready: true, want: Rules{Mode: Strict, Read: []string{in("notes"), in("app/config.json")}, Network: AllNetwork}},
		"a tool that changes things": {ready: true, writer: "write_file", want: Rules{Mode: Strict, Read: []string{in("app/config.json")}, Write: []string{in("notes")}, Network: NoNetwork}},
		"a tool that takes a URL":    {ready: true, reacher: "fetch", want: Rules{Mode: Strict, Read: []string{in("notes"), in("app/config.json")}, Network: AllNetwork}},
	} {
		first := true
		found, err := s.Suggest(command, Rules{}, func(r Rules) Trial {
			if first && r.Network != NoNetwork {
				t.Errorf("%s: the first trial has a network", name)
			}
			first = false
			for _, step := range c.steps {
				if !step.has(r) {
					return Trial{Failure: "exit status 1", Output: step.output}
				}
			}
			return Trial{Ready: true, Writer: c.writer, Reacher: c.reacher}
		})
		if err != nil || !found.Rules.Equal(c.want) || found.Ready != c.ready || found.Failure != c.failure {
			t.Errorf("%s: %+v, %v; want %+v", name, found, err, c.want)
		}
		if all := strings.Join(found.LeftOut, "\n"); (all == "") != (c.leftOut == "") || !strings.Contains(all, c.leftOut) {
			t.Errorf("%s: left out %q", name, all)
		}
	}
	// A file in the home folder of the user is not in the private one.
	found, err := s.Suggest(command, Rules{}, func(Rules) Trial {
		return Trial{Ready: true, Output: "ENOENT: no such file, open '/tmp/mcpproxy-sandbox-123/.config/tool/config.json'"}
	})
	if err != nil || !strings.Contains(strings.Join(found.LeftOut, ""), "HOME is a private folder") {
		t.Errorf("%+v, %v", found, err)
	}
	s.probe = func() machineSupport { return machineSupport{os: "darwin"} }
	if _, err := s.Suggest(command, Rules{}, func(Rules) Trial { t.Error("started"); return Trial{} }); err == nil {
		t.Error("a machine without sandboxes tries one")
	}
}

// TestSuggestNeverWritesWhatOthersRun checks that a trial that is denied to write such files does not get them, but may
// get to read them.
func TestSuggestNeverWritesWhatOthersRun(t *testing.T) {
	home, s := suggestWorld(t)
	in := func(path string) string { return filepath.Join(home, path) }
	write(t, in("bare.git/HEAD"), "")
	for path, isLeft := range map[string]bool{
		".config/autostart/x.desktop": true, ".config/systemd/user/x.service": true, ".local/bin/ls": true, "bin/ls": true, ".config/fish/config.fish": true, ".zsh/x": true,
		".bashrc.d/x": true, ".vscode-insiders/extensions/x": true, "Library/LaunchAgents/x.plist": true, "repo/.git/hooks/pre-commit": true, "repo/.vscode/tasks.json": true, "bare.git/hooks/update": true, ".local/share/applications/x": true,
		"binary/x": false, "repo/src/x": false, "web/hooks/x": false, ".config/tool/x": false, ".local/share/tool/x": false,
	} {
		write(t, in(path), "")
		found, err := s.Suggest(process.Command{Name: "/bin/sh", Env: map[string]string{"HOME": home}}, Rules{}, func(Rules) Trial {
			return Trial{Ready: true, Output: "EROFS: read-only file system, open '" + in(path) + "'"}
		})
		left := strings.Join(found.LeftOut, "")
		if err != nil || isLeft != (len(found.Rules.Write) == 0) || isLeft != strings.Contains(left, "other programs run") {
			t.Errorf("%s: %+v, %v", path, found, err)
		}
	}
	found, err := s.Suggest(process.Command{Name: "/bin/sh", Args: []string{in("repo/.git")}, Env: map[string]string{"HOME": home}}, Rules{}, func(Rules) Trial {
		return Trial{Ready: true, Writer: "commit"}
	})
	if err != nil || len(found.Rules.Write) > 0 || !slices.Equal(found.Rules.Read, []string{in("repo/.git")}) {
		t.Errorf("%+v, %v", found, err)
	}
}

// TestTrialsStayWithinTheSandbox checks that no trial allows a server more than its sandbox, whatever it asks for.
func TestTrialsStayWithinTheSandbox(t *testing.T) {
	home, s := suggestWorld(t)
	in := func(path string) string { return filepath.Join(home, path) }
	write(t, in("Documents/tax.pdf"), "")
	if err := os.Symlink(in("Documents"), in("data/link")); err != nil { // as the server could make it
		t.Fatal(err)
	}
	asks := func(path string) string { return "EACCES: permission denied, open '" + in(path) + "'" }
	strict := func(r Rules) Rules { r.Mode = Strict; return r }
	notes, all := []string{in("notes")}, string(AllNetwork)
	for name, c := range map[string]struct {
		current Rules
		output  string
		trials  int  // all with the network none, unless current has one
		untried bool // the proposal has what the server asked for
	}{
		"nothing":                     {strict(Rules{Read: notes}), "", 1, false},
		"a network":                   {strict(Rules{Read: notes}), "getaddrinfo ENOTFOUND x", 1, true},
		"a network that it has":       {strict(Rules{Read: notes, Network: AllNetwork}), "getaddrinfo ENOTFOUND x", 2, false},
		"a file":                      {strict(Rules{Read: notes}), asks("Documents/tax.pdf"), 1, true},
		"a file that it may read":     {strict(Rules{Read: []string{"~/notes", "~/Documents"}}), asks("Documents/tax.pdf"), 2, false},
		"a file in mode on":           {Rules{Mode: On}, asks("Documents/tax.pdf"), 2, false},
		"to write what it reads":      {Rules{Mode: On, Read: notes}, "EROFS: read-only file system, open '" + in("notes/b.txt") + "'", 1, true},
		"to write":                    {strict(Rules{Write: notes}), "EROFS: read-only file system, open '" + in("notes/b.txt") + "'", 2, false},
		"a link that it made":         {strict(Rules{Read: notes, Write: []string{in("data")}}), asks("data/link/tax.pdf"), 1, true},
		"a file that it can replace":  {strict(Rules{Read: notes, Write: []string{in("data")}}), asks("data/my.db"), 1, true},
		"its launch needs more":       {strict(Rules{Read: []string{in("data")}}), "", 0, true},
		"a container":                 {Rules{Mode: Container, Image: "x", Read: notes, Network: AllNetwork}, "", 0, true},
		"without a sandbox, anything": {Rules{Mode: Off}, asks("Documents/tax.pdf") + "\ngetaddrinfo ENOTFOUND x", 2, false},
	} {
		trials := 0
		found, err := s.Suggest(process.Command{Name: "/bin/sh", Args: notes, Env: map[string]string{"HOME": home}}, c.current, func(r Rules) Trial {
			trials++
			if r.HasNetwork() && !c.current.HasNetwork() {
				t.Errorf("%s: a trial has a network", name)
			}
			if trials > 1 {
				return Trial{Ready: true}
			}
			return Trial{Ready: true, Output: c.output}
		})
		if err != nil || trials != c.trials || found.Untried != c.untried || found.Started != (c.trials > 0) || found.Ready == c.untried || found.Failure != "" {
			t.Errorf("%s: %d trials, %+v, %v", name, trials, found, err)
		}
		if strings.Contains(c.output, "ENOTFOUND") && string(found.Rules.Network) != all {
			t.Errorf("%s: the proposal is %+v", name, found.Rules)
		}
	}
	// The network is not guessed if it cannot be tried: the rules are those of the failed trial.
	found, err := s.Suggest(process.Command{Name: "/bin/sh", Args: notes, Env: map[string]string{"HOME": home}}, strict(Rules{Read: notes}), func(Rules) Trial {
		return Trial{Failure: "exit status 1"}
	})
	if err != nil || found.Untried || found.Failure != "exit status 1" || found.Rules.Network != NoNetwork {
		t.Errorf("%+v, %v", found, err)
	}
}

// TestPinOfPythonIsCompared: a server of a pinned Python package is compared with the index before it runs.
func TestPinOfPythonIsCompared(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("uvx of this test is a script")
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "uvx"), "#!/bin/sh\nexit 1\n")
	p := plan{Command: "uvx", Args: []string{"--default-index", "http://127.0.0.1:1/simple", "--from", "pkg==1.0", "pkg"}, Pin: "pypi:pkg@1.0#sha256-00", Packages: dir}
	p, err := p.resolved([]string{"PATH=" + dir + string(os.PathListSeparator) + os.Getenv("PATH")}, "")
	if err != nil || !p.Compare || !p.prepares() {
		t.Fatalf("%+v, %v", p, err)
	}
	if _, err := p.compared(); err == nil { // the index does not answer, and there was no comparison before
		t.Error("a package that was never compared is started")
	}
	p.Compared = true
	if p, err = p.resolved([]string{"PATH=" + dir}, ""); err != nil || p.Compare {
		t.Errorf("%+v, %v", p, err)
	}
}
