//go:build !unix

package process

import "os"

// newTryWrite never writes: here pipes cannot be written without waiting.
func newTryWrite(*os.File) func([]byte) (int, error) {
	return func([]byte) (int, error) { return 0, nil }
}
