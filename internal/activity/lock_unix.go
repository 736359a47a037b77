//go:build unix

package activity

import (
	"os"
	"syscall"
)

// lockFile makes this process the only one that writes to the spool, until the
// file is closed or the process ends in whatever way.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
