//go:build !unix

package ondisk

import "os"

// SyncDir does nothing: this system journals names.
func SyncDir(string) error { return nil }

// Named reports whether path still names f. Here an open file can neither be deleted nor renamed.
func Named(string, *os.File) (bool, error) { return true, nil }
