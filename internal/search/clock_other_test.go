//go:build !linux

package search

import "time"

var started = time.Now()

// clock and processClock are the time of day: processor time is asked for on Linux alone.
func clock() time.Duration        { return time.Since(started) }
func processClock() time.Duration { return time.Since(started) }
