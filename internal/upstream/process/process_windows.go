package process

import (
	"os"
	"syscall"
)

// groupAttr puts a process into its own group, so that Ctrl-C for MCPProxy does not reach
// it.
func groupAttr(bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP, HideWindow: true}
}

// termGroup does nothing: Windows has no graceful end for a process without a window,
// except the end of its input.
func termGroup(*os.Process) {}

// groupLives is always false: there are no groups.
func groupLives(*os.Process) bool { return false }

// killGroup kills the process, not its children.
func killGroup(p *os.Process) { p.Kill() }
