//go:build !linux

package activity

import (
	"errors"
	"os"
)

// This file replaces features that exist only on Linux.

// FindTmpfsDir returns a directory whose files are in memory and survive the process. On this system it returns "".
func FindTmpfsDir() string { return "" }

func recentCopyPath(in, _ string) (string, error) { return in, nil }

func openRecentCopy(string) (r *recentCopy, left [2][]byte, safe int64, err error) {
	return nil, left, 0, errors.ErrUnsupported
}

// reserveDiskBlocks does nothing on this system.
func reserveDiskBlocks(*os.File, int64) (known bool, err error) { return false, nil }
