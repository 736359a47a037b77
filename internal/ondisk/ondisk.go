// Package ondisk is what it takes that a file is on its disk, under its name, and
// one process's alone.
//
// It guarantees that what WriteNew and SyncDir were given survives the loss of
// power once they have returned, as far as the system can be asked for that. It
// knows nothing of what is in files, and keeps no second copy of one.
package ondisk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrLocked is why Lock fails when another process has the file.
var ErrLocked = errors.New("another process uses the file")

// lockedError is an ErrLocked in the words of the system.
type lockedError struct{ error }

func (lockedError) Is(target error) bool { return target == ErrLocked }

// Replace puts text in the place of a file, for which readers and crashes see the
// old one or the new one. Nobody else can read it.
func Replace(path string, text []byte) error {
	// One name, so that what a crash left behind is cleared away by the next one:
	// it may hold secrets.
	next := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".tmp")
	err := WriteNew(next, text)
	if err == nil {
		err = os.Rename(next, path)
	}
	if err != nil {
		_ = os.Remove(next)
		return err
	}
	_ = SyncDir(filepath.Dir(path)) // not every file system can; the file itself is synced
	return nil
}

// WriteNew makes a file that nobody else can read, in the place of one that a
// crash has left there.
func WriteNew(path string, parts ...[]byte) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	for _, p := range parts {
		if _, err := f.Write(p); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	return errors.Join(f.Sync(), f.Close())
}
