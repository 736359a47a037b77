package ondisk

import (
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
