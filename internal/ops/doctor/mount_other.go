//go:build !linux

package doctor

import "path/filepath"

// mountPoint returns the directory of a path: this system does not provide the mount point.
func mountPoint(path string) string { return filepath.Dir(path) }
