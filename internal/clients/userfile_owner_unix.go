//go:build unix

package clients

import (
	"io/fs"
	"os"
	"syscall"
)

// openRegular opens a file to read. Nothing waits for who writes into a pipe, and a
// link that has come into its place meanwhile is not followed.
func openRegular(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
}

// ownedByUser reports whether a file belongs to who runs this.
func ownedByUser(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

// ownerCanWrite reports whether its owner may write a file.
func ownerCanWrite(mode fs.FileMode) bool { return mode&0o200 != 0 }
