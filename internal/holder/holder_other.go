//go:build !linux

package holder

// OfPort finds nothing: this system does not tell.
func OfPort(uint16) (p Process, taken bool) { return Process{}, false }

// OfFile finds nothing: this system does not tell.
func OfFile(string, ...int) Process { return Process{} }

// Executable is not known here.
func Executable(int) string { return "" }
