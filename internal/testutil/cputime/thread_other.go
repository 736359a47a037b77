//go:build !linux

package cputime

import "time"

// Thread returns the processor time of the process: Linux alone reports that of a thread here.
func Thread() time.Duration { return Process() }
