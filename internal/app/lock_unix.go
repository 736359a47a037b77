//go:build unix

package app

import (
	"os"
	"path/filepath"
	"syscall"
)

// lockDir makes sure that one daemon uses the data directory. The lock ends
// with the process, so that a crash leaves none behind.
func lockDir(dir string) (release func() error, err error) {
	path := filepath.Join(dir, lockName)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, unwritable(err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close() // nothing was written
		return nil, inUse(dir)
	}
	return f.Close, nil
}
