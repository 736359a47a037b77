package autostart

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"strings"

	"mcpproxy/internal/problem"
)

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
