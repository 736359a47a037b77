//go:build !linux

package activity

import "os"

// reserveBlocks does nothing.
func reserveBlocks(*os.File, int64) (known bool, err error) { return false, nil }
