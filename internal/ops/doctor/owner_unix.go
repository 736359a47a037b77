//go:build unix

package doctor

import (
	"io/fs"
	"syscall"

	"golang.org/x/sys/unix"
)

// ownerOf returns the owner of a file.
func ownerOf(info fs.FileInfo) int {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(s.Uid)
	}
	return -1
}

// mayWrite reports whether this process may write to path.
func mayWrite(path string) bool { return unix.Access(path, unix.W_OK) == nil }
