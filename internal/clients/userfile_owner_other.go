//go:build !unix

package clients

import (
	"io/fs"
	"os"
)

func openRegular(path string) (*os.File, error) { return os.Open(path) }

// ownedByUser always returns true on this system, because only the account's own directories are read.
func ownedByUser(fs.FileInfo) bool { return true }

func ownerCanWrite(mode fs.FileMode) bool { return mode&0o200 != 0 }
