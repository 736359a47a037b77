package transport

import "syscall"

// newLargeBuffer maps memory. The kernel allocates it on the first write.
func newLargeBuffer(n int) []byte {
	buf, err := syscall.Mmap(-1, 0, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil { // Munmap ignores an address that was not mapped
		return make([]byte, n)
	}
	return buf
}

// releaseBufferMemory frees the memory of a buffer and keeps the mapping.
func releaseBufferMemory(buf []byte) { _ = syscall.Madvise(buf, syscall.MADV_DONTNEED) } // on failure it keeps its memory

// freeBuffer unmaps a buffer. For a buffer that is not mapped it does nothing.
func freeBuffer(buf []byte) { _ = syscall.Munmap(buf) }
