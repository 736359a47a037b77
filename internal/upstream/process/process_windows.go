package process

import (
	"os"
	"syscall"
)

// newProcessGroupAttr puts a process into its own group, so that Ctrl-C for MCPProxy does not reach
// it.
func newProcessGroupAttr(bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP, HideWindow: true}
}

// terminateGroup does nothing: Windows has no graceful end for a process without a window,
// except the end of its input.
func terminateGroup(*os.Process) {}

// groupExists is always false: there are no groups.
func groupExists(*os.Process) bool { return false }

// killGroup kills the process, not its children.
func killGroup(p *os.Process) { p.Kill() }
