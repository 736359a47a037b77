//go:build !unix

package doctor

import "io/fs"

// fileOwner is unknown on this system.
func fileOwner(fs.FileInfo) int { return -1 }

// canWrite is always true: modes have no meaning on this system.
func canWrite(string) bool { return true }
