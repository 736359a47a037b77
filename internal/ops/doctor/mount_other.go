//go:build !linux

package doctor

import "path/filepath"

// mountOf returns the directory of a path: this system does not tell the mount point.
func mountOf(path string) string { return filepath.Dir(path) }
