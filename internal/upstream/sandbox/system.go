package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"mcpproxy/internal/upstream/pin"
	"mcpproxy/internal/upstream/process"
)

// ExecCommand is the command of MCPProxy that restricts itself and then runs a server.
const ExecCommand = "sandbox-exec"

// System starts servers in their sandboxes on this machine.
type System struct {
	packages string   // folder of the pinned packages
	private  []string // files and folders of MCPProxy
	probe    func() machineSupport
}

// NewSystem returns a System. packages is the folder of the pinned packages. No sandbox can read or write the private
// files and folders.
func NewSystem(packages string, private ...string) *System {
	return &System{packages: packages, private: private, probe: sync.OnceValue(probeSupport)}
}

// machineSupport is what a machine offers to enforce a sandbox.
type machineSupport struct {
	os         string // of runtime.GOOS
	landlock   int    // version of the Landlock ABI; 0 if there is none
	syscalls   bool   // filters of system calls
	namespaces bool   // user, process, mount and network namespaces without privileges
}

// Versions of the Landlock ABI.
const (
	abiFiles   = 3 // all writes, also truncating (Linux 6.2)
	abiSignals = 6 // signals to other processes (Linux 6.12)
)

// Gap is a rule that this machine cannot enforce.
type Gap struct {
	Rule string // the limit on the server
	Fix  string
}

func (g Gap) String() string { return g.Rule + ": " + g.Fix }

// NotEnforced returns the rules that this machine cannot enforce.
func (s *System) NotEnforced(r Rules) []Gap {
	if !r.IsOn() {
		return nil
	}
	return s.probe().gaps(r)
}

func (p machineSupport) gaps(r Rules) (all []Gap) {
	switch {
	case !r.IsOn() || r.Mode == Container:
		return nil
	case p.os != "linux":
		return []Gap{{`sandbox.mode "` + string(r.Mode) + `" needs Linux`, `use "container" with Docker or Podman`}}
	}
	if p.landlock < abiFiles {
		all = append(all, Gap{"limits for files", "use Linux 6.2 or later with Landlock turned on (lsm=landlock,… on the kernel command line)"})
	}
	if !p.syscalls {
		all = append(all, Gap{"limits for the network, sockets and other processes", "use a kernel with seccomp (CONFIG_SECCOMP_FILTER) on amd64 or arm64"})
	}
	if p.landlock < abiSignals && !p.namespaces {
		all = append(all, Gap{"no signals to other processes", "use Linux 6.12 or later, or allow user namespaces (sysctl user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns)"})
	}
	return all
}

// Notes returns what is weaker on this machine although no rule of users is about it.
func (s *System) Notes(r Rules) []string {
	if !r.IsOn() || r.Mode == Container {
		return nil
	}
	if p := s.probe(); p.os == "linux" && !p.namespaces {
		return []string{"user namespaces are not available, so processes that the server starts can outlive it, inside the sandbox"}
	}
	return nil
}

// plan is the argument of ExecCommand, as JSON.
type plan struct {
	Rules   Rules    `json:"rules"` // with absolute paths
	Home    string   `json:"home"`
	Private []string `json:"private"`
	Tmp     string   `json:"tmp"`
	TmpHome bool     `json:"tmp_home,omitempty"` // whether the server's HOME is Tmp
	// Command and Args are the server as configured. Install is the command that makes its package available.
	Command string   `json:"command"`
	Args    []string `json:"args"`
	Install []string `json:"install,omitempty"`
	Pin     string   `json:"pin,omitempty"` // the exact package; "" without a pin
	// Compare means that the pin of a Python package is to be compared with the index first; Compared, that it was.
	Compare   bool     `json:"compare,omitempty"`
	Compared  bool     `json:"compared,omitempty"`
	Packages  string   `json:"packages,omitempty"`
	Program   string   `json:"program,omitempty"` // what to run in the sandbox, with ProgramArgs
	ProgArgs  []string `json:"program_args,omitempty"`
	Reads     []string `json:"reads,omitempty"`
	Namespace bool     `json:"namespace,omitempty"` // whether it runs in namespaces of its own
}

// prepares reports whether something is to be done outside of the sandbox before the server starts.
func (p plan) prepares() bool { return p.Compare || len(p.Install) > 0 }

func (p plan) arguments() []string {
	text, err := json.Marshal(p)
	if err != nil {
		panic("strings always encode: " + err.Error())
	}
	return []string{ExecCommand, string(text)}
}

// SetupError means that the sandbox of a server could not be set up. Its text is MCPProxy's own, with paths of the
// configuration.
type SetupError struct{ err error }

func (e *SetupError) Error() string { return e.err.Error() }
func (e *SetupError) Unwrap() error { return e.err }

// Wrap returns the command that runs c with the rules, or a SetupError. If exact is the pin of a package, the command
// starts it only if its integrity is that of the pin. The command removes the private temporary folder at its end.
func (s *System) Wrap(c process.Command, r Rules, exact string) (process.Command, error) {
	if !r.IsOn() {
		return c, nil
	}
	out, err := s.wrap(c, r, exact)
	if err != nil {
		return c, &SetupError{err}
	}
	return out, nil
}

// tmpPrefix begins the name of the private temporary folder of a server.
const tmpPrefix = "mcpproxy-sandbox-"

func (s *System) wrap(c process.Command, r Rules, exact string) (process.Command, error) {
	p := s.probe()
	if gaps := p.gaps(r); len(gaps) > 0 && !r.BestEffort {
		return c, &UnenforceableError{gaps}
	} else if len(gaps) > 0 && p.os != "linux" {
		return c, nil
	}
	home, hasHome := c.Env["HOME"]
	if !hasHome {
		home, _ = os.UserHomeDir()
	}
	r = r.WithHome(home)
	if r.Mode == Container {
		return containerCommand(c, r, s.private)
	}
	tmp, err := os.MkdirTemp("", tmpPrefix)
	if err != nil {
		return c, fmt.Errorf("make the private temporary folder: %w", err)
	}
	if tmp, err = filepath.EvalSymlinks(tmp); err != nil {
		return c, fmt.Errorf("make the private temporary folder: %w", err)
	}
	out, err := wrapCommand(c, plan{Rules: r, Home: home, Private: s.private, Tmp: tmp,
		TmpHome: r.Mode == Strict && !hasHome, Command: c.Name, Args: c.Args, Pin: exact, Packages: s.packages, Namespace: p.namespaces})
	if err != nil {
		os.RemoveAll(tmp)
		return c, err
	}
	out.AfterExit = func() { os.RemoveAll(tmp) }
	return out, nil
}

func wrapCommand(c process.Command, p plan) (process.Command, error) {
	env := map[string]string{}
	for name, value := range c.Env {
		env[name] = value
	}
	env["TMPDIR"], env["TMP"], env["TEMP"] = p.Tmp, p.Tmp, p.Tmp
	p, err := p.resolved(process.Environment(env), c.Dir)
	if err != nil {
		return c, err
	}
	if len(p.Install) == 0 {
		if _, err := grantedAccess(p.Rules, p.Home, p.Private, p.Reads); err != nil { // else the first error is in the log
			return c, err
		}
	}
	return process.Command{
		Name: selfProgram, Args: p.arguments(), Env: env, Dir: c.Dir, Installs: len(p.Install) > 0,
		Modify: func(attr *syscall.SysProcAttr) {
			if p.Namespace && !p.prepares() {
				isolate(attr, p.Rules.HasNetwork())
			}
		},
	}, nil
}

// resolved returns the plan with what its command runs.
func (p plan) resolved(env []string, dir string) (plan, error) {
	l, err := resolveLaunch(p.Command, p.Args, env, dir)
	if err != nil {
		return p, err
	}
	p.Program, p.ProgArgs, p.Reads, p.Install = l.program, l.args, l.reads, l.install
	switch exact, err := pin.Parse(p.Pin); {
	case err != nil: // no pin
	case exact.Kind == pin.NPM && len(l.install) == 0:
		return p, exact.CheckNPM(l.npmFolder)
	case exact.Kind == pin.PyPI:
		p.Compare = !p.Compared
	}
	return p, nil
}

// compared returns the plan after the pin of its Python package was compared with the index.
func (p plan) compared() (plan, error) {
	exact, err := pin.Parse(p.Pin)
	if err != nil {
		return p, err
	}
	l, why, ok := pin.FindLaunch(p.Command, p.Args)
	if !ok || l.Kind != exact.Kind || l.Name != exact.Name {
		return p, errNotResolved("the pin does not fit the command %s", why)
	}
	_, err = l.CheckPyPI(context.Background(), exact, p.Packages)
	p.Compared = true
	return p, err
}

// UnenforceableError means that this machine cannot enforce the rules.
type UnenforceableError struct{ Gaps []Gap }

func (e *UnenforceableError) Error() string {
	var all []string
	for _, g := range e.Gaps {
		all = append(all, g.String())
	}
	return "this machine cannot enforce the sandbox: " + strings.Join(all, "; ") + `. To start the server anyway, set "best_effort": true in its sandbox`
}

// errNotResolved rejects a launch that a sandbox cannot prepare.
func errNotResolved(format string, args ...any) error {
	return errors.New("prepare the sandbox: " + fmt.Sprintf(format, args...))
}
