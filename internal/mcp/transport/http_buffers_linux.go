package transport

import "syscall"

// newBuffer maps memory, which takes none until it is written to.
func newBuffer(n int) []byte {
	buf, err := syscall.Mmap(-1, 0, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil { // it is unmapped by its address, which ours has not
		return make([]byte, n)
	}
	return buf
}

// emptyBuffer returns the memory of a buffer, and keeps its addresses.
func emptyBuffer(buf []byte) { _ = syscall.Madvise(buf, syscall.MADV_DONTNEED) } // it stays then

// endBuffer ends a buffer; one that was not mapped is refused, and collected.
func endBuffer(buf []byte) { _ = syscall.Munmap(buf) }
