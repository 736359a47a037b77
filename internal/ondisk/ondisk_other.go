//go:build !unix

package ondisk

import "os"

// SyncDir does nothing, because this system journals file names.
func SyncDir(string) error { return nil }

// IsFileStillAtPath returns true: on this system an open file can neither be deleted nor renamed.
func IsFileStillAtPath(string, *os.File) (bool, error) { return true, nil }
