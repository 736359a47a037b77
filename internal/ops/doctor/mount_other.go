//go:build !linux

package doctor

import "path/filepath"

// mountOf is the directory of a path: this system does not tell where it is mounted.
func mountOf(path string) string { return filepath.Dir(path) }
