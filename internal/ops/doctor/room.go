package doctor

import (
	"os"
	"path/filepath"
)

// nearest returns dir, or its nearest existing parent.
func nearest(dir string) string {
	for {
		if _, err := os.Stat(dir); err == nil || dir == filepath.Dir(dir) {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}
