package ondisk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

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
