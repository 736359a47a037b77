package doctor

import (
	"os"
	"path/filepath"
	"strings"
)

// mountPoint returns the mount point of a path.
func mountPoint(path string) string {
	table, _ := os.ReadFile("/proc/self/mounts")
	at := map[string]bool{}
	for line := range strings.Lines(string(table)) {
		if f := strings.Fields(line); len(f) > 1 {
			at[f[1]] = true
		}
	}
	for !at[path] && path != "/" && path != "." {
		path = filepath.Dir(path)
	}
	return path
}
