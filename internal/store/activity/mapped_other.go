//go:build !linux

package activity

// openMappedFile opens a segment for appending as a plain file. A mapping requires reserved disk blocks, and each
// system reserves them differently.
func openMappedFile(path string) (spoolFile, error) { return openPlainFile(path) }
