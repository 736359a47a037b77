//go:build unix

package app

import "syscall"

// openFileLimit returns the limit of open files of the process, or 0 if it is unknown.
func openFileLimit() uint64 {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	return uint64(limit.Cur)
}
