//go:build !unix

package app

// openFileLimit returns the limit of open files of the process, or 0 if it is unknown.
func openFileLimit() uint64 { return 0 }
