//go:build !linux

package doctor

import "path/filepath"

// mountPoint returns the directory of a path, because finding the mount point is not implemented for this system.
func mountPoint(path string) string { return filepath.Dir(path) }
