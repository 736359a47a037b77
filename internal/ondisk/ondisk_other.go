//go:build !unix

package ondisk

import "os"

// SyncDir does nothing: this system journals names.
func SyncDir(string) error { return nil }

// PathNamesFile reports whether path still names f. Here an open file can neither be deleted nor renamed.
func PathNamesFile(string, *os.File) (bool, error) { return true, nil }
