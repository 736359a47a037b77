//go:build !unix

package doctor

import "io/fs"

// ownerOf is unknown on this system.
func ownerOf(fs.FileInfo) int { return -1 }

// mayWrite is always true: modes have no meaning on this system.
func mayWrite(string) bool { return true }
