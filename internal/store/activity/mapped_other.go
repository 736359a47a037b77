//go:build !linux

package activity

// openMapped opens a segment to append to, in the plain way: how the blocks are
// reserved that a mapping needs differs from system to system.
func openMapped(path string) (spoolFile, error) { return openFile(path) }
