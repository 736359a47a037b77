//go:build !linux

package cputime

import "time"

// Thread returns the CPU time of the whole process, because only Linux reports that of a thread.
func Thread() time.Duration { return Process() }
