package autostart

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"strings"

	"mcpproxy/internal/problem"
)

// Account says whose services are managed, and on which system.
type Account struct {
	GOOS   string
	Home   string // absolute
	Config string // XDG_CONFIG_HOME; "" = .config in the home directory
	User   string // the name, on Windows with its domain
	UID    int    // not on Windows
	// Run runs a program of the system and returns what it printed, on stdout; nil =
	// it is run. Its error says what it printed on stderr.
	Run func(ctx context.Context, name string, args ...string) (string, error)
}

// run runs a program with an empty input.
func run(ctx context.Context, name string, args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if said := strings.TrimSpace(stderr.String()); err != nil && said != "" {
		err = &failure{err, said}
	}
	return stdout.String(), err
}

// failure is a program that failed and said why.
type failure struct {
	err  error
	said string
}

func (f *failure) Error() string { return f.said }
func (f *failure) Unwrap() error { return f.err }

// failed is the problem that a step of the manager failed.
func failed(step string, err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	return problem.New(problem.Conflict, step+": "+strings.Join(strings.Fields(err.Error()), " "),
		"`mcpproxy service status` says what is there; `mcpproxy serve` runs in the foreground.").Because(err)
}
