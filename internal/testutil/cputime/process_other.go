//go:build !unix

package cputime

import "time"

// Process returns 0, because CPU time is not available on this system.
func Process() time.Duration { return 0 }
