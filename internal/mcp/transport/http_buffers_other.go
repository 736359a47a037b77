//go:build !linux

package transport

func newBuffer(n int) []byte { return make([]byte, n) }
func emptyBuffer([]byte)     {}
func endBuffer([]byte)       {}
