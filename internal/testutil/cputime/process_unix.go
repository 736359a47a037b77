//go:build unix

package cputime

import (
	"syscall"
	"time"
)

// Process returns the CPU time of all threads of the process.
func Process() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
