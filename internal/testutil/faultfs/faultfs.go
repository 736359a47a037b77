// Package faultfs makes the faults of file systems and of system calls that
// tests and measurements need, with real ones: a tmpfs that fills up, an ext4 in
// a file that goes read-only or dies, system calls of a process that fail.
//
// It is for Linux and needs the rights to mount and to trace; Available reports
// whether it has them. What it makes, Close and Stop take away.
package faultfs

import (
	"errors"
	"os"
	"syscall"
)

// Delete deletes a file, or a folder in which a program that runs may make files meanwhile.
func Delete(path string) error {
	for try := 1; ; try++ {
		if err := os.RemoveAll(path); !errors.Is(err, syscall.ENOTEMPTY) || try == 100 {
			return err
		}
	}
}
