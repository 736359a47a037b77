// Package autostart has a program started when its user logs in, and started again
// when it fails: by a systemd user unit, a launchd agent, or a task of the Windows
// task scheduler.
//
// It guarantees that nothing it does needs more rights than the user has, that
// installing or removing twice is like once, that a file which it has not written
// is neither overwritten nor removed, and that State says what the manager of the
// system says now. It does not look whether the program does its work.
package autostart

import (
	"context"

	"mcpproxy/internal/problem"
)

// Manager is the one of a system that starts programs for a user.
type Manager interface {
	// Install has the program started now and at each login. It reports whether
	// anything was changed; a service that runs and has changed is started again.
	Install(ctx context.Context, p Program) (changed bool, err error)
	// Uninstall stops the service and forgets it. It reports whether there was one.
	Uninstall(ctx context.Context) (was bool, err error)
	State(ctx context.Context) (State, error)
}

// New returns the manager of the account's system.
func New(a Account) (Manager, error) {
	if a.Run == nil {
		a.Run = run
	}
	switch a.GOOS {
	case "linux":
		return &systemd{account: a}, nil
	case "darwin":
		return &launchd{account: a}, nil
	case "windows":
		return &scheduler{account: a}, nil
	}
	return nil, problem.New(problem.InvalidRequest, "On "+a.GOOS+" there is no manager of services that MCPProxy knows.",
		"Have `mcpproxy serve` started by what your system has for it.")
}
