//go:build !linux && !darwin

package ondisk

// Free is not supported on this system.
func Free(string) (free int64, known bool) { return 0, false }
