package doctor

import (
	"os"
	"path/filepath"
)

// nearest is dir, or the nearest directory above it that is there.
func nearest(dir string) string {
	for {
		if _, err := os.Stat(dir); err == nil || dir == filepath.Dir(dir) {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}
