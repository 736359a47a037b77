// Package autostart starts a program when its user logs in, and restarts it when it fails. It uses a systemd user unit, a
// launchd agent, or a task of the Windows Task Scheduler.
//
// Files:
//   - manager.go: the interface Manager, the program and its state, the service file, running system programs
//   - systemd.go, launchd.go, scheduler.go: the service managers of Linux, macOS and Windows
//
// Guarantees:
//   - It needs only the rights of the user.
//   - Installing and removing are idempotent.
//   - It does not overwrite or remove a file that it has not written.
//   - State is the current report of the service manager.
//
// It does not check whether the program works.
package autostart

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"mcpproxy/internal/ondisk"
	"mcpproxy/internal/problem"
)

// Manager is a system's service manager for a user.
type Manager interface {
	// Install starts the program now and at each login. It reports whether anything was changed. It restarts a running service that has changed.
	Install(ctx context.Context, p Program) (changed bool, err error)
	// Uninstall stops and removes the service. It reports whether there was one.
	Uninstall(ctx context.Context) (was bool, err error)
	State(ctx context.Context) (ServiceState, error)
}

// New returns the service manager of the account's system.
func New(a UserAccount) (Manager, error) {
	if a.Run == nil {
		a.Run = runProgram
	}
	switch a.GOOS {
	case "linux":
		return &systemdManager{account: a}, nil
	case "darwin":
		return &launchdManager{account: a}, nil
	case "windows":
		return &schedulerManager{account: a}, nil
	}
	return nil, problem.New(problem.InvalidRequest, "On "+a.GOOS+" MCPProxy does not support the service manager of this system.",
		"Start `mcpproxy serve` with the service manager of your system.")
}

// name is the name of the service.
const name = "mcpproxy"

// Program is the program to run. Texts with control characters are rejected.
type Program struct {
	Path string   // absolute path of the program
	Args []string // without the program
	Dir  string   // absolute working directory; "" is the home directory for systemd
	Env  []string // NAME=VALUE; ignored on Windows, where a task has the environment of its user
	Log  string   // file for stderr with launchd, which has no log
}

// ServiceState is the report of the service manager.
type ServiceState struct {
	Manager   string `json:"manager" doc:"The service manager: systemd, launchd or task scheduler."`
	File      string `json:"file,omitempty" doc:"The path of the service definition. Absent if the manager has no file."`
	Installed bool   `json:"installed"`
	Enabled   bool   `json:"enabled" doc:"Whether the service starts when the user logs in."`
	Running   bool   `json:"running"`
	PID       int    `json:"pid,omitempty" doc:"The id of the process. Absent if the manager does not report it."`
	Detail    string `json:"detail" doc:"The state as the manager reports it."`
	Restart   string `json:"restart" doc:"The command that restarts the service."`
	Log       string `json:"log,omitempty" doc:"The command that shows the output of the service. Absent if the manager does not store it."`
}

// rejectControlChars rejects characters that a service file cannot express.
func (p Program) rejectControlChars() error {
	for _, text := range append(append([]string{p.Path, p.Dir, p.Log}, p.Args...), p.Env...) {
		if strings.ContainsFunc(text, unicode.IsControl) {
			return problem.New(problem.InvalidParameter, "A path or a variable of the service has a control character.", "Rename it, or unset the variable.")
		}
	}
	return nil
}

// UserAccount identifies the user whose services are managed, and the system.
type UserAccount struct {
	GOOS   string
	Home   string // absolute
	Config string // XDG_CONFIG_HOME; "" = .config in the home directory
	User   string // the name, on Windows with its domain
	UID    int    // not on Windows
	// Run runs a system program and returns its stdout; nil uses os/exec. Its error has the program's stderr.
	Run func(ctx context.Context, name string, args ...string) (string, error)
}

// runProgram runs a program with an empty input.
func runProgram(ctx context.Context, name string, args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if said := strings.TrimSpace(stderr.String()); err != nil && said != "" {
		err = &commandError{err, said}
	}
	return stdout.String(), err
}

// commandError is a failed program and its output.
type commandError struct {
	err  error
	said string
}

func (f *commandError) Error() string { return f.said }
func (f *commandError) Unwrap() error { return f.err }

// newStepError returns the problem of a failed step.
func newStepError(step string, err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	return problem.New(problem.Conflict, step+": "+strings.Join(strings.Fields(err.Error()), " "),
		"To see the state, run `mcpproxy service status`. To run MCPProxy in the foreground, run `mcpproxy serve`.").Because(err)
}

// ExecutablePath returns the path by which this program was started. A package manager keeps it stable across versions. It rejects a binary of go run, which is
// deleted when it ends.
func ExecutablePath() (string, error) {
	file, err := os.Executable()
	if err != nil {
		return "", newStepError("The path of this program is unknown", err)
	}
	if strings.Contains(filepath.ToSlash(file), "/go-build") {
		return "", problem.New(problem.Usage, "This program was built by `go run`, which deletes it when it ends.", "Install it first, with a package or `go install ./cmd/mcpproxy`.")
	}
	if named, err := exec.LookPath(os.Args[0]); err == nil && sameFile(named, file) {
		if named, err = filepath.Abs(named); err == nil {
			return named, nil
		}
	}
	return file, nil
}

func sameFile(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// ServiceSearchPath returns a PATH for a service: the existing directories of a shell's PATH, without duplicates. A directory below a temporary directory, such
// as fnm creates for each shell, is replaced by its target or left out.
func ServiceSearchPath(path string, temporary ...string) string {
	var dirs []string
	for _, dir := range filepath.SplitList(path) {
		if isBelowAny(dir, temporary) {
			dir, _ = filepath.EvalSymlinks(dir)
		}
		info, err := os.Stat(dir)
		if err != nil || !info.IsDir() || !filepath.IsAbs(dir) || isBelowAny(dir, temporary) || slices.Contains(dirs, dir) {
			continue
		}
		dirs = append(dirs, dir)
	}
	return strings.Join(dirs, string(filepath.ListSeparator))
}

func isBelowAny(dir string, parents []string) bool {
	return slices.ContainsFunc(parents, func(parent string) bool {
		rel, err := filepath.Rel(parent, dir)
		return parent != "" && err == nil && filepath.IsLocal(rel)
	})
}

// fileMarker is in every file that this package writes.
const fileMarker = "Written by `mcpproxy service install`"

// writeServiceFile writes the file of the service, readable only by its owner, and reports whether that changed it.
func writeServiceFile(path, text string) (changed bool, err error) {
	was, err := readOwnServiceFile(path)
	if err != nil || was == text {
		return false, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return false, newStepError("The file of the service cannot be written", err)
	}
	if err := ondisk.ReplaceFile(path, []byte(text)); err != nil {
		return false, newStepError("The file of the service cannot be written", err)
	}
	return true, nil
}

// removeServiceFile removes the file of the service, and reports whether it existed.
func removeServiceFile(path string) (was bool, err error) {
	text, err := readOwnServiceFile(path)
	if err != nil || text == "" {
		return false, err
	}
	if err := os.Remove(path); err != nil {
		return false, newStepError("The file of the service cannot be removed", err)
	}
	return true, nil
}

// readOwnServiceFile returns the text of a file that this package has written, or "" if there is no file. It rejects
// any other file.
func readOwnServiceFile(path string) (string, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", newStepError("The file of the service cannot be read", err)
	}
	if info.Mode().IsRegular() && info.Size() < 1<<20 {
		text, err := os.ReadFile(path)
		if err != nil {
			return "", newStepError("The file of the service cannot be read", err)
		}
		if strings.Contains(string(text), fileMarker) {
			return string(text), nil
		}
	}
	return "", problem.New(problem.Conflict, path+" was not written by `mcpproxy service install`.",
		"Move the file away if nothing needs it, and run the command again.")
}
