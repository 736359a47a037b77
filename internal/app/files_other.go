//go:build !unix

package app

// openFileLimit returns the limit of open files of the process; 0 when unknown.
func openFileLimit() uint64 { return 0 }
