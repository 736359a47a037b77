//go:build unix

package process

import (
	"os"
	"syscall"
)

// terminateGroup sends SIGTERM to the process group of p.
func terminateGroup(p *os.Process) { signalGroup(p, syscall.SIGTERM) }

// killGroup kills the process group of p. It is also called just after p was reaped, for
// its children: while one of them lives the group id is not reused.
func killGroup(p *os.Process) { signalGroup(p, syscall.SIGKILL) }

// groupExists reports whether the process group of p still exists.
func groupExists(p *os.Process) bool { return syscall.Kill(-p.Pid, 0) == nil }

func signalGroup(p *os.Process, sig syscall.Signal) {
	if p.Pid > 1 { // -1 would signal every process
		syscall.Kill(-p.Pid, sig)
	}
}
