//go:build unix

package doctor

import (
	"io/fs"
	"syscall"

	"golang.org/x/sys/unix"
)

// fileOwner returns the user ID of a file's owner.
func fileOwner(info fs.FileInfo) int {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(s.Uid)
	}
	return -1
}

// canWrite reports whether this process may write to path.
func canWrite(path string) bool { return unix.Access(path, unix.W_OK) == nil }
