//go:build !linux

package process

import "time"

// groupCPUTime is not supported here.
func groupCPUTime(int) (used time.Duration, running, ok bool) { return 0, false, false }
