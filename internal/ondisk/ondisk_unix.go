//go:build unix

package ondisk

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// SyncDir makes new names in dir durable.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// IsFileStillAtPath reports whether path still names the open file f: it was neither deleted nor replaced.
func IsFileStillAtPath(path string, f *os.File) (bool, error) {
	own, err := f.Stat()
	if err != nil {
		return false, err
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(own, info), err
}

// LockFile opens the file at path, or creates it, and locks it for this process until it is closed or the
// process ends. The error is ErrLocked if another process holds it.
func LockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(lockedError{err}, f.Close())
	}
	return f, nil
}
