package search

import (
	"time"

	"golang.org/x/sys/unix"
)

// clock is the processor time of the thread, to be asked with the thread locked, and
// processClock that of all threads: on a busy machine the time of day says little.
func clock() time.Duration        { return clockOf(unix.CLOCK_THREAD_CPUTIME_ID) }
func processClock() time.Duration { return clockOf(unix.CLOCK_PROCESS_CPUTIME_ID) }

func clockOf(id int32) time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(id, &now); err != nil {
		panic(err)
	}
	return time.Duration(now.Nano())
}
