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

// LockFile opens the file at path, or creates it, and locks it. The error is ErrLocked if another process
// holds it.
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

// Lock locks an open file. The error is ErrLocked if another process holds it.
func Lock(f *os.File) (*LockedFile, error) {
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, lockedError{err}
	}
	return &LockedFile{f}, nil
}

// Close unlocks the file before it closes it: a child process that is being started has a copy of the
// descriptor until it executes its program, and would keep the lock for that long.
func (f *LockedFile) Close() error {
	return errors.Join(syscall.Flock(int(f.Fd()), syscall.LOCK_UN), f.File.Close())
}
