//go:build !linux

package app

// holderOf finds nothing: this system does not tell.
func holderOf(uint16) (pid int, process, dataDir string) { return 0, "", "" }
