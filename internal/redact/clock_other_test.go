//go:build !linux

package redact_test

import "time"

var started = time.Now()

// clock is the time of day: the processor time of a thread is asked for on Linux alone.
func clock() time.Duration { return time.Since(started) }
