//go:build !unix

package activity

import "time"

// processTime is unknown on this system.
func processTime() time.Duration { return 0 }
