//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// runInOwnProcessGroup starts the command in a process group of its own, which ends with
// its context: npx leaves the server that it started otherwise.
func runInOwnProcessGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
