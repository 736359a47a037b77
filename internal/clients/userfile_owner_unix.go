//go:build unix

package clients

import (
	"io/fs"
	"os"
	"syscall"
)

// openRegular opens a file for reading. It does not wait for the writer of a pipe and does not follow a link.
func openRegular(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
}

// ownedByUser reports whether the current user owns a file.
func ownedByUser(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

// ownerCanWrite reports whether the owner may write a file.
func ownerCanWrite(mode fs.FileMode) bool { return mode&0o200 != 0 }
