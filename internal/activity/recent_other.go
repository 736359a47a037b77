//go:build !linux

package activity

import "errors"

// MemoryDir is a folder whose files are in memory and outlive the process: there
// is none here that is sure to be.
func MemoryDir() string { return "" }

func recentPath(in, _ string) (string, error) { return in, nil }

func openRecent(string) (r *recent, left [2][]byte, safe int64, err error) {
	return nil, left, 0, errors.ErrUnsupported
}
