package e2e

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// eachFile calls fn for each regular file below a directory, and returns their number. A running program may remove
// files in the meantime.
func eachFile(t testing.TB, dir string, fn func(path string, content []byte)) (files int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			var content []byte
			if content, err = os.ReadFile(path); err == nil {
				files++
				fn(path, content)
			}
		}
		if errors.Is(err, fs.ErrNotExist) && path != dir {
			return nil
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return files
}
