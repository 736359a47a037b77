package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestText(t *testing.T) {
	for want, r := range map[string]Rules{
		"": {Mode: Off, Read: []string{"/a"}},
		"may read ~/notes, write nothing, no network":                                                                                         {Mode: Strict, Read: []string{"~/notes"}},
		"may read only its own program, read and write /a, any network":                                                                       {Mode: Strict, Write: []string{"/a"}, Network: AllNetwork},
		"in a container of node:22, may read /a, /b and /c, write nothing, no network":                                                        {Mode: Container, Image: "node:22", Read: []string{"/a", "/b", "/c"}},
		"may read the home folder except keys, tokens and browser profiles, write nothing, no network; as far as this machine can enforce it": {Mode: On, BestEffort: true},
	} {
		if got := r.Text(); got != want {
			t.Errorf("%+v: %q, want %q", r, got, want)
		}
	}
}

func TestGaps(t *testing.T) {
	full := machineSupport{"linux", 7, true, true}
	for name, c := range map[string]struct {
		machine machineSupport
		mode    Mode
		want    int
	}{
		"all":                               {full, Strict, 0},
		"off":                               {machineSupport{os: "darwin"}, Off, 0},
		"another system":                    {machineSupport{os: "darwin"}, On, 1},
		"another system with a container":   {machineSupport{os: "windows"}, Container, 0},
		"no Landlock":                       {machineSupport{"linux", 0, true, true}, On, 1},
		"an early Landlock":                 {machineSupport{"linux", 2, true, true}, On, 1},
		"no seccomp":                        {machineSupport{"linux", 7, false, true}, On, 1},
		"signals by namespaces":             {machineSupport{"linux", 5, true, true}, On, 0},
		"signals by Landlock":               {machineSupport{"linux", 6, true, false}, On, 0},
		"no limit for signals":              {machineSupport{"linux", 5, true, false}, On, 1},
		"a kernel without any of the three": {machineSupport{os: "linux"}, Strict, 3},
	} {
		if got := c.machine.gaps(Rules{Mode: c.mode}); len(got) != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestNeverWeaker checks that a machine with gaps starts no server, unless best_effort allows it.
func TestNeverWeaker(t *testing.T) {
	s := &System{probe: func() machineSupport { return machineSupport{os: "plan9"} }}
	_, err := s.Wrap(commandForTest(), Rules{Mode: On}, "")
	if err == nil || !strings.Contains(err.Error(), "container") || !strings.Contains(err.Error(), "best_effort") {
		t.Errorf("%v", err)
	}
	if c, err := s.Wrap(commandForTest(), Rules{Mode: On, BestEffort: true}, ""); err != nil || c.Name != commandForTest().Name {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestGrantedAccess(t *testing.T) {
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	in := func(path string) string { return filepath.Join(home, path) }
	for _, dir := range []string{".ssh", ".config/gh", ".config/app", "notes", "dotfiles/aws", ".mcpproxy", "data"} {
		if err := os.MkdirAll(in(dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{".aws": "dotfiles/aws", "root": "/", "data/link": ".ssh"} {
		if err := os.Symlink(to, in(link)); err != nil {
			t.Fatal(err)
		}
	}
	private := []string{in(".mcpproxy")}
	a, err := grantedAccess(Rules{Mode: On}, home, private, nil)
	if err != nil {
		t.Fatal(err)
	}
	covers := func(path string) bool {
		return slices.ContainsFunc(a.read, func(r string) bool { return isWithin(path, r) })
	}
	for path, want := range map[string]bool{"notes/a": true, ".config/app/x": true, "data": true, ".ssh/id": false, ".config/gh/hosts.yml": false, "dotfiles/aws/credentials": false, ".mcpproxy/api_key": false} {
		if covers(in(path)) != want {
			t.Errorf("%s can be read: %v, want %v", path, !want, want)
		}
	}
	if covers("/var/lib") || covers("/etc/ssl/private") || covers(home) || !covers("/usr/bin") {
		t.Errorf("%q can be read", a.read)
	}
	if a, err = grantedAccess(Rules{Mode: Strict, Read: []string{home}}, home, private, nil); err != nil || covers(in(".ssh/id")) || !covers(in("notes")) {
		t.Errorf("%q can be read, %v", a.read, err)
	}
	if a, err = grantedAccess(Rules{Mode: Strict, Read: []string{in(".ssh")}}, home, private, nil); err != nil || !covers(in(".ssh/id")) || covers(in("notes")) {
		t.Errorf("a secret that is named: %q, %v", a.read, err)
	}
	// A server that can write to data may have replaced a folder in it by a link.
	if a, err = grantedAccess(Rules{Mode: Strict, Read: []string{in("data/link")}, Write: []string{in("data"), in("data/link")}}, home, private, nil); err != nil || covers(in(".ssh")) || !slices.Equal(a.write, []string{in("data")}) {
		t.Errorf("%+v, %v", a, err)
	}
	for name, r := range map[string]Rules{
		"contains":       {Mode: Strict, Write: []string{home}},
		"belongs to":     {Mode: Strict, Read: []string{in(".mcpproxy")}},
		"does not exist": {Mode: Strict, Read: []string{in("absent")}},
	} {
		if _, err := grantedAccess(r, home, private, nil); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestNothingIsProbedWithoutASandbox: a server without a sandbox starts no process to find out what the kernel offers.
func TestNothingIsProbedWithoutASandbox(t *testing.T) {
	s := &System{probe: func() machineSupport { t.Error("probed"); return machineSupport{} }}
	if _, err := s.Wrap(commandForTest(), Rules{}, ""); err != nil || s.NotEnforced(Rules{}) != nil || s.Notes(Rules{Mode: Off}) != nil {
		t.Errorf("%v", err)
	}
}
