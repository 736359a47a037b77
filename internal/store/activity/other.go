//go:build !linux

package activity

import (
	"errors"
	"os"
)

// What differs from system to system, and is made for Linux only.

// MemoryDir is a folder whose files are in memory and outlive the process: there
// is none here that is sure to be.
func MemoryDir() string { return "" }

func recentPath(in, _ string) (string, error) { return in, nil }

func openRecent(string) (r *recent, left [2][]byte, safe int64, err error) {
	return nil, left, 0, errors.ErrUnsupported
}

// reserveBlocks does nothing.
func reserveBlocks(*os.File, int64) (known bool, err error) { return false, nil }
