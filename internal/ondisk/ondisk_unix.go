//go:build unix

package ondisk

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// SyncDir makes changes to the names in dir durable.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// IsFileStillAtPath reports whether path still refers to the open file f, that is, f was neither deleted nor replaced.
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

// LockFile opens or creates the file at path and locks it. It returns ErrLocked if another process has locked the file.
func LockFile(path string) (*LockedFile, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	locked, err := Lock(f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return locked, nil
}

// Lock locks an open file. It returns ErrLocked if another process has locked the file.
func Lock(f *os.File) (*LockedFile, error) {
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, lockedError{err}
	}
	return &LockedFile{f}, nil
}

// Close unlocks the file, then closes it. Closing alone is not enough: a child process that is being started has a copy
// of the descriptor until it executes its program, and the copy would keep the lock.
func (f *LockedFile) Close() error {
	return errors.Join(syscall.Flock(int(f.Fd()), syscall.LOCK_UN), f.File.Close())
}
