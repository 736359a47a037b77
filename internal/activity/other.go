//go:build !linux

package activity

import "errors"

// What differs from system to system, and is made for Linux only.

// MemoryDir is a folder whose files are in memory and outlive the process: there
// is none here that is sure to be.
func MemoryDir() string { return "" }

func recentPath(in, _ string) (string, error) { return in, nil }

func openRecent(string) (r *recent, left [2][]byte, safe int64, err error) {
	return nil, left, 0, errors.ErrUnsupported
}

// openMapped opens a segment to append to, in the plain way.
func openMapped(path string) (spoolFile, error) { return openFile(path) }
