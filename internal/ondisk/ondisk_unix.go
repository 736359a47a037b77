//go:build unix

package ondisk

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// SyncDir makes new names in dir survive the loss of power.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Named reports whether path is still the name of f.
func Named(path string, f *os.File) (bool, error) {
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

// Lock opens the file at path, and makes it when there is none, for this process
// alone, until the file is closed or the process ends in whatever way. The error
// is ErrLocked when another one has it.
func Lock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(lockedError{err}, f.Close())
	}
	return f, nil
}
