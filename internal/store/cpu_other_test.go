//go:build !unix

package store

import "time"

// processTime is not available on this system.
func processTime() time.Duration { return 0 }
