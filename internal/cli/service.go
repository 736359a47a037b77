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
	DataDir string `json:"data_dir" doc:"The data directory of the daemon."`
}

// withServiceManager returns the run function of a command that uses the service manager.
func (r *invocation) withServiceManager(f func(ctx context.Context, m autostart.Manager) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		m, err := r.newServiceManager()
		if err != nil {
			return err
		}
		return f(cmd.Context(), m)
	}
}

// newServiceManager returns the service manager of this user.
func (r *invocation) newServiceManager() (autostart.Manager, error) {
	if r.Manager != nil {
		return r.Manager, nil
	}
	if sudo, _ := r.lookupEnv("SUDO_USER"); sudo != "" && os.Getuid() == 0 {
		return nil, problem.New(problem.Usage, "With sudo, the service would belong to root instead of "+toPrintable(sudo)+".", "Run the command without sudo.")
	}
	me, err := user.Current()
	if err != nil {
		return nil, problem.New(problem.Internal, "Cannot determine the current user: "+err.Error()+".", "")
	}
	home, _ := r.lookupEnv("HOME")
	xdg, _ := r.lookupEnv("XDG_CONFIG_HOME")
	return autostart.New(autostart.UserAccount{GOOS: runtime.GOOS, Home: cmp.Or(home, me.HomeDir), Config: xdg, User: me.Username, UID: os.Getuid()})
}

// newServiceProgram returns the program that the service runs. It is this program, with flags for the configuration
// file and the data directory unless they are the defaults.
func (r *invocation) newServiceProgram() (autostart.Program, error) {
	self, flags, err := r.ownProgramAndFlags()
	if err != nil {
		return autostart.Program{}, err
	}
	dir, err := r.resolveDataDir()
	if err != nil {
		return autostart.Program{}, err
	}
	path, _ := r.lookupEnv("PATH")
	runtimeDir, _ := r.lookupEnv("XDG_RUNTIME_DIR")
	p := autostart.Program{Path: self, Args: append([]string{"serve"}, flags...), Log: filepath.Join(dir, "service.log")}
	if found := autostart.ServiceSearchPath(path, os.TempDir(), runtimeDir); found != "" {
		p.Env = []string{"PATH=" + found}
	}
	if runtime.GOOS != "linux" { // systemd starts services in the home directory by default
		p.Dir, err = os.UserHomeDir()
	}
	return p, err
}

// ownProgramAndFlags returns the path of this program and the flags that select the same configuration file and data
// directory.
func (r *invocation) ownProgramAndFlags() (path string, flags []string, err error) {
	if path = r.Program; path == "" {
		if path, err = autostart.ExecutablePath(); err != nil {
			return "", nil, err
		}
	}
	file, err := r.resolveConfigPath()
	if err != nil {
		return "", nil, err
	}
	dir, err := r.resolveDataDir()
	return path, config.PathFlags(file, dir, r.lookupEnv), err
}

func newServiceInstallCommand(r *invocation) commandSpec {
	return commandSpec{run: r.withServiceManager(func(ctx context.Context, m autostart.Manager) error {
		p, err := r.newServiceProgram()
		if err != nil {
			return err
		}
		changed, err := m.Install(ctx, p)
		if err != nil {
			return err
		}
		view, err := r.awaitServiceDaemon(ctx, m)
		if err != nil {
			return err
		}
		return r.printOutput(view, func(p *printer) {
			if changed {
				p.writeLine("MCPProxy is running, and starts at each login.")
			} else {
				p.writeLine("MCPProxy is already installed as a service. Nothing was changed.")
			}
			p.writeLine("")
			writeServiceView(p, r.Version, view)
		})
	})}
}

func newServiceUninstallCommand(r *invocation) commandSpec {
	return commandSpec{run: r.withServiceManager(func(ctx context.Context, m autostart.Manager) error {
		was, err := m.Uninstall(ctx)
		if err != nil {
			return err
		}
		return r.printOutput(struct {
			Removed bool `json:"removed"`
		}{was}, func(p *printer) {
			if was {
				p.writeLine("MCPProxy is stopped and no longer starts at login. Configuration and data are kept.")
			} else {
				p.writeLine("MCPProxy was not installed as a service.")
			}
		})
	})}
}

func newServiceStatusCommand(r *invocation) commandSpec {
	return commandSpec{run: r.withServiceManager(func(ctx context.Context, m autostart.Manager) error {
		view, err := r.fetchServiceView(ctx, m)
		if err != nil {
			return err
		}
		return r.printOutput(view, func(p *printer) { writeServiceView(p, r.Version, view) })
	})}
}

// fetchServiceView requests the state of the service and of the daemon.
func (r *invocation) fetchServiceView(ctx context.Context, m autostart.Manager) (view serviceView, err error) {
	if view.ServiceState, err = m.State(ctx); err != nil {
		return view, err
	}
	if view.DataDir, err = r.resolveDataDir(); err != nil {
		return view, err
	}
	if s, err := callDaemon(ctx, r, api.GetStatus, ops.Nothing{}); err == nil {
		view.Answers, view.Daemon, view.Version = true, s.PID, s.Version
	}
	return view, nil
}

// How long, and how often, a command checks whether the daemon of a service answers.
const (
	serviceTimeout      = 15 * time.Second
	servicePollInterval = 100 * time.Millisecond
)

// awaitServiceDaemon waits until the daemon of the service answers.
func (r *invocation) awaitServiceDaemon(ctx context.Context, m autostart.Manager) (serviceView, error) {
	wait, cancel := context.WithTimeout(ctx, serviceTimeout)
	defer cancel()
	look := time.NewTicker(servicePollInterval)
	defer look.Stop()
	for {
		view, err := r.fetchServiceView(ctx, m)
		if err != nil || view.Answers {
			return view, err
		}
		select {
		case <-look.C:
		case <-wait.Done():
			return view, problem.New(problem.Timeout, "The service is installed, but MCPProxy does not respond. "+view.Manager+" says: "+view.Detail,
				"See why: "+cmp.Or(view.Log, "`mcpproxy serve`")).Because(wait.Err())
		}
	}
}

func writeServiceView(p *printer, version string, v serviceView) {
	if !v.Installed && v.File == "" {
		p.writeLine("MCPProxy is not installed as a service. To install it, run `mcpproxy service install`.")
		if v.Answers {
			p.writeLine("It is running without a service, as process %d.", v.Daemon)
		}
		return
	}
	var f fieldList
	f.add("Manager", v.Manager)
	f.add("File", toOneLine(v.File))
	f.add("At login", map[bool]string{true: "is started", false: p.colorize(colorWarning, "is not started")}[v.Enabled])
	now := toOneLine(v.Detail)
	if v.PID > 0 {
		now += ", process " + strconv.Itoa(v.PID)
	}
	f.add("Now", p.colorize(map[bool]colorMeaning{true: colorGood, false: colorBad}[v.Running], now))
	f.add("Daemon", p.colorize(map[bool]colorMeaning{true: colorGood, false: colorBad}[v.Answers], serviceDaemonText(v)))
	f.write(p)
	switch {
	case !v.Enabled && !v.Running:
		p.addNote("To start it, run `mcpproxy service install`.")
	case !v.Answers && v.Log != "":
		p.addNote("Its output: `%s`", v.Log)
	case v.Answers && v.Version != version:
		p.addNote("The daemon has version %s, this program %s. Restart it: `%s`", toOneLine(v.Version), version, v.Restart)
	}
}

// serviceDaemonText describes whether a daemon answers and whether the service runs it.
func serviceDaemonText(v serviceView) string {
	switch {
	case !v.Answers:
		return "none answers for " + toOneLine(v.DataDir)
	case v.PID > 0 && v.PID != v.Daemon || !v.Running:
		return "another daemon is running, process " + strconv.Itoa(v.Daemon) + ": the service starts its own daemon when that one ends"
	}
	return "answers, version " + toOneLine(v.Version)
}
