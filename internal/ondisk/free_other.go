//go:build !linux && !darwin

package ondisk

// Free returns nothing: the room on a disk is not known here.
func Free(string) (free int64, known bool) { return 0, false }
