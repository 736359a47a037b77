package cli

import (
	"cmp"
	"context"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"mcpproxy/internal/api"
	"mcpproxy/internal/app/autostart"
	"mcpproxy/internal/config"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
)

// serviceView is the state of the service and of the daemon.
type serviceView struct {
	autostart.ServiceState
	Answers bool   `json:"answers"`
	Daemon  int    `json:"daemon_pid,omitempty"`
	Version string `json:"daemon_version,omitempty"`
	DataDir string `json:"data_dir" doc:"where the daemon was looked for"`
}

// withManager returns the run function of a command that uses the service manager.
func (r *run) withManager(f func(ctx context.Context, m autostart.Manager) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		m, err := r.manager()
		if err != nil {
			return err
		}
		return f(cmd.Context(), m)
	}
}

// manager returns the service manager of this user.
func (r *run) manager() (autostart.Manager, error) {
	if r.Manager != nil {
		return r.Manager, nil
	}
	if sudo, _ := r.lookup("SUDO_USER"); sudo != "" && os.Getuid() == 0 {
		return nil, problem.New(problem.Usage, "With sudo the service would be root's, and not that of "+printable(sudo)+".", "Run the command without sudo.")
	}
	me, err := user.Current()
	if err != nil {
		return nil, problem.New(problem.Internal, "It is not known who you are: "+err.Error()+".", "")
	}
	home, _ := r.lookup("HOME")
	xdg, _ := r.lookup("XDG_CONFIG_HOME")
	return autostart.New(autostart.UserAccount{GOOS: runtime.GOOS, Home: cmp.Or(home, me.HomeDir), Config: xdg, User: me.Username, UID: os.Getuid()})
}

// program returns what the service runs: this program, with the configuration and data of this command unless they are the defaults.
func (r *run) program() (autostart.Program, error) {
	self, flags, err := r.self()
	if err != nil {
		return autostart.Program{}, err
	}
	dir, err := r.dataDirectory()
	if err != nil {
		return autostart.Program{}, err
	}
	path, _ := r.lookup("PATH")
	runtimeDir, _ := r.lookup("XDG_RUNTIME_DIR")
	p := autostart.Program{Path: self, Args: append([]string{"serve"}, flags...), Log: filepath.Join(dir, "service.log")}
	if found := autostart.SearchPath(path, os.TempDir(), runtimeDir); found != "" {
		p.Env = []string{"PATH=" + found}
	}
	if runtime.GOOS != "linux" { // systemd's own is the home directory
		p.Dir, err = os.UserHomeDir()
	}
	return p, err
}

// self returns this program, and the flags with which a service or a client starts it for the same configuration and data.
func (r *run) self() (path string, flags []string, err error) {
	if path = r.Program; path == "" {
		if path, err = autostart.ExecutablePath(); err != nil {
			return "", nil, err
		}
	}
	file, err := r.configFile()
	if err != nil {
		return "", nil, err
	}
	dir, err := r.dataDirectory()
	return path, config.PathFlags(file, dir, r.lookup), err
}

func serviceInstall(r *run) command {
	return command{run: r.withManager(func(ctx context.Context, m autostart.Manager) error {
		p, err := r.program()
		if err != nil {
			return err
		}
		changed, err := m.Install(ctx, p)
		if err != nil {
			return err
		}
		view, err := r.awaitService(ctx, m)
		if err != nil {
			return err
		}
		return r.print(view, func(p *printer) {
			if changed {
				p.line("MCPProxy is started now, and whenever you log in.")
			} else {
				p.line("MCPProxy is installed as a service already; nothing was changed.")
			}
			p.line("")
			writeService(p, r.Version, view)
		})
	})}
}

func serviceUninstall(r *run) command {
	return command{run: r.withManager(func(ctx context.Context, m autostart.Manager) error {
		was, err := m.Uninstall(ctx)
		if err != nil {
			return err
		}
		return r.print(struct {
			Removed bool `json:"removed"`
		}{was}, func(p *printer) {
			if was {
				p.line("MCPProxy is stopped and no longer started when you log in. Configuration and data stay.")
			} else {
				p.line("MCPProxy was not installed as a service.")
			}
		})
	})}
}

func serviceStatus(r *run) command {
	return command{run: r.withManager(func(ctx context.Context, m autostart.Manager) error {
		view, err := r.serviceState(ctx, m)
		if err != nil {
			return err
		}
		return r.print(view, func(p *printer) { writeService(p, r.Version, view) })
	})}
}

// serviceState requests the state of the service and of the daemon.
func (r *run) serviceState(ctx context.Context, m autostart.Manager) (view serviceView, err error) {
	if view.ServiceState, err = m.State(ctx); err != nil {
		return view, err
	}
	if view.DataDir, err = r.dataDirectory(); err != nil {
		return view, err
	}
	c, err := r.client()
	if err != nil {
		return view, err
	}
	defer c.Close()
	if s, err := api.GetStatus.Call(ctx, c, ops.Nothing{}); err == nil {
		view.Answers, view.Daemon, view.Version = true, s.PID, s.Version
	}
	return view, nil
}

// How long to wait for the daemon of a service, and the poll interval.
const (
	serviceTimeout      = 15 * time.Second
	servicePollInterval = 100 * time.Millisecond
)

// awaitService waits until a daemon answers.
func (r *run) awaitService(ctx context.Context, m autostart.Manager) (serviceView, error) {
	wait, cancel := context.WithTimeout(ctx, serviceTimeout)
	defer cancel()
	look := time.NewTicker(servicePollInterval)
	defer look.Stop()
	for {
		view, err := r.serviceState(ctx, m)
		if err != nil || view.Answers {
			return view, err
		}
		select {
		case <-look.C:
		case <-wait.Done():
			return view, problem.New(problem.Timeout, "The service is installed, but MCPProxy does not answer. "+view.Manager+" says: "+view.Detail,
				"See why: "+cmp.Or(view.Log, "`mcpproxy serve`")).Because(wait.Err())
		}
	}
}

func writeService(p *printer, version string, v serviceView) {
	if !v.Installed && v.File == "" {
		p.line("MCPProxy is not installed as a service: `mcpproxy service install` does that.")
		if v.Answers {
			p.line("It runs all the same, as process %d.", v.Daemon)
		}
		return
	}
	var f fields
	f.add("Manager", v.Manager)
	f.add("File", oneLine(v.File))
	f.add("At login", map[bool]string{true: "is started", false: p.paint(hueWarning, "is not started")}[v.Enabled])
	now := oneLine(v.Detail)
	if v.PID > 0 {
		now += ", process " + strconv.Itoa(v.PID)
	}
	f.add("Now", p.paint(map[bool]hue{true: hueGood, false: hueBad}[v.Running], now))
	f.add("Daemon", p.paint(map[bool]hue{true: hueGood, false: hueBad}[v.Answers], daemonNote(v)))
	f.write(p)
	switch {
	case !v.Enabled && !v.Running:
		p.note("`mcpproxy service install` has it started.")
	case !v.Answers && v.Log != "":
		p.note("What it printed: `%s`", v.Log)
	case v.Answers && v.Version != version:
		p.note("The daemon is of version %s, this program of %s. Start it again: `%s`", oneLine(v.Version), version, v.Restart)
	}
}

// daemonNote says whether a daemon answers, and whether it is the service's.
func daemonNote(v serviceView) string {
	switch {
	case !v.Answers:
		return "none answers for " + oneLine(v.DataDir)
	case v.PID > 0 && v.PID != v.Daemon || !v.Running:
		return "another one answers, process " + strconv.Itoa(v.Daemon) + ": the service takes over when that has ended"
	}
	return "answers, version " + oneLine(v.Version)
}
