//go:build !linux

package activity

// openMappedFile opens a segment for appending, as a plain file. A mapping needs reserved blocks, and how
// these are reserved depends on the system.
func openMappedFile(path string) (spoolFile, error) { return openPlainFile(path) }
