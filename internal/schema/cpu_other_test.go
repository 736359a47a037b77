//go:build !unix

package schema

import "time"

// processTime is not known here.
func processTime() time.Duration { return 0 }
