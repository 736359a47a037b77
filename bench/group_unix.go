//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// runInOwnProcessGroup starts the command in a new process group and kills the group when
// the context ends. Otherwise, the server that npx started would keep running.
func runInOwnProcessGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
