//go:build !unix

package process

import "os"

// newNonblockingWriteFunc returns a function that never writes: pipes here have no
// nonblocking writes.
func newNonblockingWriteFunc(*os.File) func([]byte) (int, error) {
	return func([]byte) (int, error) { return 0, nil }
}
