package process

import (
	"os"
	"syscall"
)

// groupAttr puts a process into a group of its own, so that a Ctrl-C meant for
// us does not reach it.
func groupAttr(bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP, HideWindow: true}
}

// termGroup does nothing: Windows has no gentle way to end a process without a
// window, apart from the end of its input, which it has seen by now.
func termGroup(*os.Process) {}

// groupLives is not known: there are no groups.
func groupLives(*os.Process) bool { return false }

// killGroup ends the process. Its own children are left to it.
func killGroup(p *os.Process) { p.Kill() }
