//go:build !linux

package transport

func newLargeBuffer(n int) []byte { return make([]byte, n) }
func releaseBufferMemory([]byte)  {}
func freeBuffer([]byte)           {}
