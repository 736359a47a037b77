package ondisk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// ReplaceFile replaces a file atomically: readers and crashes see the old or the new content. Only the owner
// can read it.
func ReplaceFile(path string, text []byte) error {
	// A fixed name, so that the next call removes the rest of a crash, which may contain secrets.
	next := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".tmp")
	err := WriteNewFile(next, text)
	if err == nil {
		err = os.Rename(next, path)
	}
	if err != nil {
		_ = os.Remove(next)
		return err
	}
	_ = SyncDir(filepath.Dir(path)) // not every file system supports it; the file itself is synced
	return nil
}

// WriteNewFile creates a file that only the owner can read. It replaces a file that a crash has left.
func WriteNewFile(path string, parts ...[]byte) error {
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
