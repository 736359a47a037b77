package autostart

import (
	"context"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
)

var update = flag.Bool("update", false, "write the golden files anew")

// awkward is a program whose paths contain characters with a special meaning in service files.
var awkward = Program{
	Path: "/opt/a b/mcpproxy", Args: []string{"serve", "--config", `/home/me/100% $HOME "x" <&>'é\.json`},
	Env: []string{"PATH=/usr/bin:/home/me/a b:/p%h"}, Dir: "/home/me", Log: "/home/me/.mcpproxy/service.log",
}

var onWindows = Program{Path: `C:\Program Files\mcpproxy.exe`, Args: []string{"serve", "--data-dir", `D:\my data\`, "--config", `D:\c.json`}, Dir: `C:\Users\me`}

func TestFiles(t *testing.T) {
	for name, got := range map[string]string{
		"systemd": SystemdUnitText(awkward), "launchd": launchdPlist(awkward), "task": windowsTaskXML(onWindows, `HOME\me & you`),
	} {
		path := filepath.Join("testdata", name+".golden")
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(path); err != nil || string(want) != got {
			t.Errorf("%s: %v, got\n%s", name, err, got)
		}
	}
}

func TestSystemdTakesTheUnit(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("there is no systemd-analyze")
	}
	dir := t.TempDir()
	p := awkward
	p.Path = filepath.Join(dir, "a b%", "mcpproxy")
	if err := errors.Join(os.Mkdir(filepath.Dir(p.Path), 0o755), os.WriteFile(p.Path, []byte("#!/bin/sh\n"), 0o755)); err != nil {
		t.Fatal(err)
	}
	p.Dir = dir
	file := filepath.Join(dir, unit)
	if err := os.WriteFile(file, []byte(SystemdUnitText(p)), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(analyze, "verify", "--user", "--man=no", file)
	cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+dir)
	if out, err := cmd.CombinedOutput(); err != nil || strings.Contains(string(out), unit) {
		t.Errorf("%v\n%s", err, out)
	}
}

// system is a fake operating system. It returns the output of programs by the beginning of their command lines.
type system struct {
	says map[string]string // an output that begins with "!" is a failure
	ran  []string
	then func(line string)
}

func (s *system) run(_ context.Context, name string, args ...string) (string, error) {
	line := strings.Join(append([]string{name}, args...), " ")
	s.ran = append(s.ran, line)
	if s.then != nil {
		s.then(line)
	}
	longest := ""
	for begin := range s.says {
		if strings.HasPrefix(line, begin) && len(begin) > len(longest) {
			longest = begin
		}
	}
	if said, fails := strings.CutPrefix(s.says[longest], "!"); fails {
		return "", errors.New(said)
	}
	return s.says[longest], nil
}

// changes returns the commands that change something.
func (s *system) changes() (out []string) {
	for _, line := range s.ran {
		if !strings.Contains(line, " show ") && !strings.Contains(line, " print") && !strings.Contains(line, "powershell") {
			out = append(out, line)
		}
	}
	return out
}

func at(t *testing.T, goos string, s *system) (Manager, UserAccount) {
	t.Helper()
	a := UserAccount{GOOS: goos, Home: t.TempDir(), User: "me", UID: 501, Run: s.run}
	m, err := New(a)
	if err != nil {
		t.Fatal(err)
	}
	return m, a
}

const (
	systemdGone    = "LoadState=not-found\nActiveState=inactive\nSubState=dead\nMainPID=0\nUnitFileState=\n"
	systemdRunning = "LoadState=loaded\nActiveState=active\nSubState=running\nMainPID=7\nUnitFileState=enabled\nFragmentPath=/f\nNRestarts=2\nResult=success\n"
)

func TestSystemd(t *testing.T) {
	s := &system{says: map[string]string{"systemctl --user show": systemdGone}}
	m, a := at(t, "linux", s)
	if changed, err := m.Install(t.Context(), awkward); err != nil || !changed {
		t.Fatal(changed, err)
	}
	file := filepath.Join(a.Home, ".config/systemd/user/mcpproxy.service")
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info, err)
	}
	s.says["systemctl --user show"] = systemdRunning
	if changed, err := m.Install(t.Context(), awkward); err != nil || changed {
		t.Error("twice is not like once", changed, err)
	}
	other := awkward
	other.Args = []string{"serve"}
	if changed, err := m.Install(t.Context(), other); err != nil || !changed {
		t.Error(changed, err)
	}
	state, err := m.State(t.Context())
	if want := (ServiceState{Manager: "systemd", File: "/f", Installed: true, Enabled: true, Running: true, PID: 7, Detail: "active (running), restarts: 2", Restart: state.Restart, Log: state.Log}); err != nil || state != want {
		t.Errorf("%+v %v", state, err)
	}
	if was, err := m.Uninstall(t.Context()); err != nil || !was {
		t.Error(was, err)
	}
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	s.says["systemctl --user show"] = systemdGone
	if was, err := m.Uninstall(t.Context()); err != nil || was {
		t.Error(was, err)
	}
	const ctl = "systemctl --user --quiet "
	if want := []string{
		ctl + "daemon-reload", ctl + "enable " + unit, ctl + "restart " + unit,
		ctl + "daemon-reload", ctl + "enable " + unit, ctl + "start " + unit,
		ctl + "daemon-reload", ctl + "enable " + unit, ctl + "restart " + unit,
		ctl + "disable --now " + unit, ctl + "daemon-reload", ctl + "reset-failed " + unit,
	}; !slices.Equal(s.changes(), want) {
		t.Errorf("%q", s.changes())
	}
}

func TestLaunchd(t *testing.T) {
	s := &system{says: map[string]string{"launchctl print gui/501/mcpproxy": "!Could not find service"}}
	s.then = func(line string) {
		switch {
		case strings.HasPrefix(line, "launchctl bootstrap"):
			s.says["launchctl print gui/501/mcpproxy"] = "gui/501/mcpproxy = {\n\tstate = running\n\tpid = 9\n\tlast exit code = 1\n\tendpoints = {\n\t\tstate = off\n"
		case strings.HasPrefix(line, "launchctl bootout"):
			s.says["launchctl print gui/501/mcpproxy"] = "!Could not find service"
		}
	}
	m, a := at(t, "darwin", s)
	other := awkward
	other.Args = nil
	for i, c := range []struct {
		p    Program
		want bool
	}{{awkward, true}, {awkward, false}, {other, true}} {
		if changed, err := m.Install(t.Context(), c.p); err != nil || changed != c.want {
			t.Error(i, changed, err)
		}
	}
	file := filepath.Join(a.Home, "Library/LaunchAgents/mcpproxy.plist")
	state, err := m.State(t.Context())
	if want := (ServiceState{Manager: "launchd", File: file, Installed: true, Enabled: true, Running: true, PID: 9, Detail: "running, the last run ended with 1", Restart: state.Restart}); err != nil || state != want {
		t.Errorf("%+v %v", state, err)
	}
	s.says["launchctl print-disabled"] = "disabled services = {\n\t\"mcpproxy\" => disabled\n}"
	if state, err := m.State(t.Context()); err != nil || state.Enabled {
		t.Errorf("%+v %v", state, err)
	}
	for _, want := range []bool{true, false} {
		if was, err := m.Uninstall(t.Context()); err != nil || was != want {
			t.Error(was, err)
		}
	}
	const ctl, target = "launchctl ", "gui/501/mcpproxy"
	if want := []string{
		ctl + "enable " + target, ctl + "bootstrap gui/501 " + file, ctl + "enable " + target,
		ctl + "bootout " + target, ctl + "enable " + target, ctl + "bootstrap gui/501 " + file, ctl + "bootout " + target,
	}; !slices.Equal(s.changes(), want) {
		t.Errorf("%q", s.changes())
	}
}

func TestScheduler(t *testing.T) {
	s := &system{says: map[string]string{}}
	s.then = func(line string) {
		if strings.HasPrefix(line, "schtasks.exe /Create") {
			args := strings.Fields(line)
			raw, err := os.ReadFile(args[5])
			if err != nil || len(raw) < 4 || raw[0] != 0xff || raw[1] != 0xfe {
				t.Fatal(err)
			}
			var units []uint16
			for i := 2; i < len(raw); i += 2 {
				units = append(units, uint16(raw[i])|uint16(raw[i+1])<<8)
			}
			if got := string(utf16.Decode(units)); got != windowsTaskXML(onWindows, "me") {
				t.Error(got)
			}
			s.ran[len(s.ran)-1] = strings.ReplaceAll(line, args[5], "FILE")
		}
	}
	m, _ := at(t, "windows", s)
	for number, want := range map[string]ServiceState{
		"": {Detail: "no such task"}, "4\r\n": {Installed: true, Enabled: true, Running: true, Detail: "running"},
		"1": {Installed: true, Detail: "disabled"}, "3": {Installed: true, Enabled: true, Detail: "ready"},
	} {
		s.says["powershell.exe"] = number
		want.Manager = "task scheduler"
		if state, err := m.State(t.Context()); err != nil || (ServiceState{Manager: state.Manager, Installed: state.Installed, Enabled: state.Enabled, Running: state.Running, Detail: state.Detail}) != want {
			t.Errorf("%q: %+v %v", number, state, err)
		}
	}
	for _, number := range []string{"", "4"} {
		s.says["powershell.exe"] = number
		if _, err := m.Install(t.Context(), onWindows); err != nil {
			t.Error(err)
		}
		if was, err := m.Uninstall(t.Context()); err != nil || was != (number != "") {
			t.Error(was, err)
		}
	}
	const create, start = "schtasks.exe /Create /TN MCPProxy /XML FILE /F", "schtasks.exe /Run /TN MCPProxy"
	if want := []string{create, start, "schtasks.exe /End /TN MCPProxy", create, start, "schtasks.exe /End /TN MCPProxy", "schtasks.exe /Delete /TN MCPProxy /F"}; !slices.Equal(s.changes(), want) {
		t.Errorf("%q", s.changes())
	}
}

// A foreign file or link stays as it is, and the service manager is not called.
func TestForeignFilesStay(t *testing.T) {
	for _, goos := range []string{"linux", "darwin"} {
		for name, put := range map[string]func(path string) error{
			"a file": func(path string) error { return os.WriteFile(path, []byte("[Service]\n"), 0o600) },
			"masked": func(path string) error { return os.Symlink("/dev/null", path) },
			"a link to one of ours": func(path string) error {
				ours := filepath.Join(t.TempDir(), "ours")
				return errors.Join(os.WriteFile(ours, []byte("# "+fileMarker), 0o600), os.Symlink(ours, path))
			},
			"a directory": func(path string) error { return os.Mkdir(path, 0o700) },
		} {
			s := &system{says: map[string]string{"systemctl --user show": systemdRunning, "launchctl print gui/501/mcpproxy": "state = running"}}
			m, a := at(t, goos, s)
			path := filepath.Join(a.Home, ".config/systemd/user/mcpproxy.service")
			if goos == "darwin" {
				path = filepath.Join(a.Home, "Library/LaunchAgents/mcpproxy.plist")
			}
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), put(path)); err != nil {
				t.Fatal(err)
			}
			_, installed := m.Install(t.Context(), awkward)
			_, removed := m.Uninstall(t.Context())
			if installed == nil || removed == nil || len(s.changes()) > 0 {
				t.Errorf("%s on %s: %v, %v, %q", name, goos, installed, removed, s.changes())
			}
			if _, err := os.Lstat(path); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestRefused(t *testing.T) {
	if _, err := New(UserAccount{GOOS: "plan9"}); err == nil {
		t.Error("there is no manager on plan9")
	}
	bad := awkward
	bad.Args = []string{"serve", "--config", "/x\nExecStartPre=/bin/evil"}
	for _, goos := range []string{"linux", "darwin", "windows"} {
		s := &system{says: map[string]string{"systemctl --user show": systemdGone}}
		m, _ := at(t, goos, s)
		if _, err := m.Install(t.Context(), bad); err == nil || len(s.ran) > 0 {
			t.Errorf("%s: %v %q", goos, err, s.ran)
		}
		s.says = map[string]string{"": "!Failed to connect to bus"}
		if _, err := m.Install(t.Context(), onWindows); err == nil || !strings.Contains(err.Error(), "Failed to connect to bus") || len(s.changes()) > 0 {
			t.Errorf("%s: %v %q", goos, err, s.ran)
		}
	}
}

func TestSearchPath(t *testing.T) {
	dir, temporary := t.TempDir(), t.TempDir()
	node := filepath.Join(dir, "node")
	if err := errors.Join(os.Mkdir(node, 0o755), os.Symlink(node, filepath.Join(temporary, "shell-1")), os.Mkdir(filepath.Join(temporary, "own"), 0o755)); err != nil {
		t.Fatal(err)
	}
	path := strings.Join([]string{filepath.Join(temporary, "shell-1"), dir, "", ".", node, filepath.Join(temporary, "own"), filepath.Join(dir, "gone"), dir}, string(filepath.ListSeparator))
	if got, want := ServiceSearchPath(path, temporary, ""), node+string(filepath.ListSeparator)+dir; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
