// Package autostart starts a program when its user logs in, and restarts it when it fails. It uses a systemd user unit, a
// launchd agent, or a task of the Windows Task Scheduler.
//
// Files:
//   - manager.go, program.go: the interface Manager, the program and its state
//   - systemd.go, launchd.go, scheduler.go: the service managers of Linux, macOS and Windows
//   - environ.go, file.go, account.go: the path of this program, the service file, running system programs
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
	"context"

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
