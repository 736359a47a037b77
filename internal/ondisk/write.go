package ondisk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// ReplaceFile replaces a file atomically: readers see the old or the new content, also after a crash. Only the owner
// can read the file.
func ReplaceFile(path string, text []byte) error {
	// The temporary name is fixed, so that the next call removes a file left by a crash. It may contain secrets.
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

// WriteNewFile creates a file that only the owner can read. It replaces a file left by a crash.
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
