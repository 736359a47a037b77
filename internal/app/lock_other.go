//go:build !unix

package app

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// lockDir makes sure that one daemon uses the data directory. Windows refuses
// to remove a file that a process holds open, which is all the lock that is
// needed.
func lockDir(dir string) (release func() error, err error) {
	path := filepath.Join(dir, lockName)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, inUse(dir)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, unwritable(err)
	}
	return f.Close, nil
}
