//go:build !unix

package process

import "os"

// newNonblockingWrite returns a function that never writes: pipes here have no
// nonblocking writes.
func newNonblockingWrite(*os.File) func([]byte) (int, error) {
	return func([]byte) (int, error) { return 0, nil }
}
