package cli

import (
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"mcpproxy/internal/app/autostart"
	"mcpproxy/internal/problem"
)

// fakeManager is a service manager that records the programs it receives.
type fakeManager struct {
	state     autostart.ServiceState
	installed []autostart.Program
	err       error
}

func (m *fakeManager) Install(_ context.Context, p autostart.Program) (bool, error) {
	m.installed = append(m.installed, p)
	return len(m.installed) == 1, m.err
}

func (m *fakeManager) Uninstall(context.Context) (bool, error)               { return len(m.installed) > 0, m.err }
func (m *fakeManager) State(context.Context) (autostart.ServiceState, error) { return m.state, m.err }

func TestServiceRunsTheFoundProgram(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the test uses Linux paths")
	}
	w := newEnvWithDaemon(t, &fakeOperations{})
	bin := t.TempDir()
	for name, c := range map[string]struct {
		env  map[string]string
		args []string
		want []string
	}{
		"another data directory":       {nil, nil, []string{"serve", "--data-dir", w.dir}},
		"from the environment":         {map[string]string{"MCPPROXY_CONFIG": "/srv/c.json"}, nil, []string{"serve", "--config", "/srv/c.json", "--data-dir", w.dir}},
		"another configuration":        {nil, []string{"--config", "/srv/c.json"}, []string{"serve", "--config", "/srv/c.json", "--data-dir", w.dir}},
		"the usual configuration file": {nil, []string{"--config", "~/.mcpproxy/mcp_config.json"}, []string{"serve", "--data-dir", w.dir}},
	} {
		m := &fakeManager{state: autostart.ServiceState{Manager: "systemd", Installed: true, Running: true, Enabled: true, Detail: "active"}}
		w.deps = Deps{Manager: m, Program: "/usr/bin/mcpproxy"}
		w.env = map[string]string{"HOME": "/home/me", "PATH": bin + "::relative:" + filepath.Join(bin, "gone") + ":/usr:/usr"}
		for k, v := range c.env {
			w.env[k] = v
		}
		got := w.runCommand(append([]string{"service", "install"}, c.args...)...)
		if got.code != 0 || len(m.installed) != 1 {
			t.Errorf("%s: %+v", name, got)
			continue
		}
		if p := m.installed[0]; p.Path != "/usr/bin/mcpproxy" || !slices.Equal(p.Args, c.want) || !slices.Equal(p.Env, []string{"PATH=/usr"}) {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

func TestServiceStatus(t *testing.T) {
	t.Parallel()
	running := autostart.ServiceState{Manager: "systemd", File: "/u/mcpproxy.service", Installed: true, Enabled: true, Running: true, PID: 42, Detail: "active (running)", Restart: "systemctl --user restart mcpproxy", Log: "journalctl"}
	failed := running
	failed.Running, failed.PID, failed.Detail = false, 0, "activating (auto-restart)"
	other := running
	other.PID = 7
	up, down := newEnvWithDaemon(t, &fakeOperations{}), newTestEnv(t)
	for name, c := range map[string]struct {
		w     *testEnv
		state autostart.ServiceState
		want  string
	}{
		"it runs":                 {up, running, "answers, version 1.2.3"},
		"another one runs":        {up, other, "another daemon is running, process 42"},
		"it cannot, another runs": {up, failed, "another daemon is running, process 42"},
		"it runs and is silent":   {down, running, "none answers for " + down.dir},
		"it is not there":         {down, autostart.ServiceState{}, "not installed as a service"},
		"without it":              {up, autostart.ServiceState{}, "It is running without a service, as process 42"},
		"there and off":           {down, autostart.ServiceState{File: "/usr/lib/u", Installed: true, Detail: "inactive"}, "is not started"},
		"not at login":            {up, autostart.ServiceState{File: "x", Installed: true, Running: true}, "is not started"},
	} {
		c.w.deps.Manager = &fakeManager{state: c.state}
		if got := c.w.runCommand("service", "status"); got.code != 0 || !strings.Contains(got.stdout, c.want) {
			t.Errorf("%s: %+v, want %q", name, got, c.want)
		}
	}
	up.deps.Manager = &fakeManager{state: running}
	if got := up.runCommand("service", "status", "-o", "json"); !strings.Contains(got.stdout, `"daemon_pid": 42`) {
		t.Errorf("%+v", got)
	}
}

func TestServiceUninstall(t *testing.T) {
	t.Parallel()
	w := newTestEnv(t)
	w.deps = Deps{Manager: &fakeManager{installed: make([]autostart.Program, 1)}}
	if got := w.runCommand("service", "uninstall"); !strings.Contains(got.stdout, "is stopped") {
		t.Errorf("%+v", got)
	}
	w.deps = Deps{Manager: &fakeManager{}}
	if got := w.runCommand("service", "uninstall"); !strings.Contains(got.stdout, "was not installed") || got.code != 0 {
		t.Errorf("%+v", got)
	}
	w.deps = Deps{Manager: &fakeManager{err: problem.New(problem.Conflict, "No systemd answers.", "Log in.")}}
	for _, command := range []string{"install", "uninstall", "status"} {
		w.deps.Program = "/usr/bin/mcpproxy"
		if got := w.runCommand("service", command); got.code != 1 || !strings.Contains(got.stderr, "No systemd answers.") {
			t.Errorf("%s: %+v", command, got)
		}
	}
}

// A program that go run or a test has built cannot be installed as a service, because it is deleted when it ends.
func TestServiceOfATemporaryProgram(t *testing.T) {
	t.Parallel()
	if _, err := autostart.ExecutablePath(); toProblem(err).Code != problem.Usage {
		t.Errorf("%v", errors.Unwrap(err))
	}
}

func TestVersionShowsTheCommit(t *testing.T) {
	t.Parallel()
	w := newTestEnv(t)
	w.deps.Commit, w.deps.Date = "0123456789abcdef", "2026-11-23T10:00:00Z"
	if got := w.runCommand("version").stdout; got != "mcpproxy 1.2.3 (commit 0123456789ab of 2026-11-23T10:00:00Z, "+runtime.Version()+", "+runtime.GOOS+"/"+runtime.GOARCH+")\n" {
		t.Error(got)
	}
	w.deps.Commit, w.deps.Date = "", ""
	if got := w.runCommand("version").stdout; got != "mcpproxy 1.2.3 ("+runtime.Version()+", "+runtime.GOOS+"/"+runtime.GOARCH+")\n" {
		t.Error(got)
	}
}

// A service does not inherit the environment of this shell, so the values of the variables are passed as flags.
func TestServiceGetsItsDirectoryFromTheEnvironment(t *testing.T) {
	t.Parallel()
	env := map[string]string{"HOME": "/home/me", "MCPPROXY_DATA_DIR": "/srv/data"}
	r := newInvocation(Deps{Program: "/usr/bin/mcpproxy", Getenv: func(name string) string { return env[name] }})
	p, err := r.newServiceProgram()
	if want := []string{"serve", "--data-dir", "/srv/data"}; err != nil || !slices.Equal(p.Args, want) {
		t.Errorf("%q, %v", p.Args, err)
	}
}

func TestServiceOfAnOlderVersion(t *testing.T) {
	t.Parallel()
	var stdout, stderr strings.Builder
	r := newInvocation(Deps{Stdout: &stdout, Stderr: &stderr})
	r.output = formatTable
	v := serviceView{ServiceState: autostart.ServiceState{Installed: true, Enabled: true, Running: true, File: "/u", Restart: "systemctl --user restart mcpproxy"}, Answers: true, Version: "1.2.2"}
	if err := r.printOutput(v, func(p *printer) { writeServiceView(p, "1.2.3", v) }); err != nil {
		t.Fatal(err)
	}
	if want := "The daemon has version 1.2.2, this program 1.2.3. Restart it: `systemctl --user restart mcpproxy`\n"; stderr.String() != want {
		t.Errorf("%q", stderr.String())
	}
}
