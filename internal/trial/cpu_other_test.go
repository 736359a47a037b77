//go:build !unix

package trial_test

import "time"

// processTime is not known here.
func processTime() time.Duration { return 0 }
