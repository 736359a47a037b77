//go:build !linux && !darwin

package activity

// freeBytes is not known here.
func freeBytes(string) (free int64, known bool) { return 0, false }
