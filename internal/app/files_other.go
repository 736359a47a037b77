//go:build !unix

package app

// openFiles is how many files the process may have open; 0 when that is not known.
func openFiles() uint64 { return 0 }
