package doctor

import (
	"os"
	"path/filepath"
)

// existingParent returns dir if it exists, otherwise its nearest existing parent.
func existingParent(dir string) string {
	for {
		if _, err := os.Stat(dir); err == nil || dir == filepath.Dir(dir) {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}
