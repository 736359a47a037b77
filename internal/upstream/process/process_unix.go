//go:build unix

package process

import (
	"os"
	"syscall"
)

// termGroup asks the process group of p to end.
func termGroup(p *os.Process) { signalGroup(p, syscall.SIGTERM) }

// killGroup ends the process group of p. It is also called just after p has
// been reaped, for the children that p left behind: as long as one of them is
// alive the group's number cannot be given to anybody else.
func killGroup(p *os.Process) { signalGroup(p, syscall.SIGKILL) }

// groupLives reports whether anything of the process group of p is left.
func groupLives(p *os.Process) bool { return syscall.Kill(-p.Pid, 0) == nil }

func signalGroup(p *os.Process, sig syscall.Signal) {
	if p.Pid > 1 { // -1 would mean everybody
		syscall.Kill(-p.Pid, sig)
	}
}
