package process

import "syscall"

// newProcessGroupAttr puts a process into its own group, and makes the kernel kill it when MCPProxy
// dies, even by SIGKILL. Package managers are excluded: they finish their installation,
// and the server that they started sees the end of its input.
func newProcessGroupAttr(installs bool) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if installs {
		attr.Pdeathsig = 0
	}
	return attr
}
