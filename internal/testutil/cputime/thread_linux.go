package cputime

import (
	"time"

	"golang.org/x/sys/unix"
)

// Thread returns the CPU time of the thread. Lock the goroutine to its thread between two calls.
func Thread() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now); err != nil {
		panic(err)
	}
	return time.Duration(now.Nano())
}
