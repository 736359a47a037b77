//go:build !unix

package ondisk

import "os"

// SyncDir does nothing: names are journalled here.
func SyncDir(string) error { return nil }

// Named reports whether path is still the name of f: here a file that is open
// can be neither deleted nor renamed.
func Named(string, *os.File) (bool, error) { return true, nil }
