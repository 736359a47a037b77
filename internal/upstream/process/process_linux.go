package process

import "syscall"

// groupAttr puts a process into a group of its own, and has the kernel kill it
// when we die without stopping it, kill -9 included. A package manager is left
// alone: it comes to its end with what it installs, and what it has started is
// another process, which sees the end of its input.
func groupAttr(installs bool) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if installs {
		attr.Pdeathsig = 0
	}
	return attr
}
