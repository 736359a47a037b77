//go:build !unix

package clients

import (
	"io/fs"
	"os"
)

func openRegular(path string) (*os.File, error) { return os.Open(path) }

// owned is not known here: the account's own directories are what is looked into.
func ownedByUser(fs.FileInfo) bool { return true }

func ownerCanWrite(mode fs.FileMode) bool { return mode&0o200 != 0 }
