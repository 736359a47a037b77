// Package faultfs injects real faults of file systems and system calls: a tmpfs that fills up, an ext4 in
// a file that becomes read-only or fails, system calls of a process that fail.
//
// It needs Linux and the rights to mount and to trace; Available reports whether it has them. Close and
// Stop remove everything that it creates.
package faultfs

import (
	"errors"
	"os"
	"syscall"
)

// RemoveAllWithRetry deletes a file, or a folder in which a running program may still create files.
func RemoveAllWithRetry(path string) error {
	for try := 1; ; try++ {
		if err := os.RemoveAll(path); !errors.Is(err, syscall.ENOTEMPTY) || try == 100 {
			return err
		}
	}
}
