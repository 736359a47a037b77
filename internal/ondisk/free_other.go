//go:build !linux && !darwin

package ondisk

// FreeSpace returns known = false, because it is not supported on this system.
func FreeSpace(string) (free int64, known bool) { return 0, false }
