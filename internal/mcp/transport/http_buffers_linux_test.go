package transport

import (
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// TestBuffersGiveTheirMemoryBack checks that one unused buffer stays ready for a while, and that the memory of the
// others is released, so that they read as zeros. Close unmaps all buffers.
func TestBuffersGiveTheirMemoryBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 1 << 20
		var b LargeBufferPool
		fill := func(buf []byte) []byte {
			for i := range buf {
				buf[i] = 1
			}
			return buf
		}
		full := func(buf []byte) bool { return buf[0] == 1 && buf[n-1] == 1 }
		one, two := fill(b.takeBuffer(n)), fill(b.takeBuffer(n))
		b.returnBuffer(one)
		b.returnBuffer(two)
		if !full(one) || full(two) {
			t.Errorf("filled: %v and %v", full(one), full(two))
		}
		if buf := b.takeBuffer(n); &buf[0] != &one[0] {
			t.Error("takeBuffer does not return the ready buffer")
		}
		if buf := b.takeBuffer(n); &buf[0] != &two[0] {
			t.Error("takeBuffer does not return the other buffer")
		}
		b.returnBuffer(fill(two))
		time.Sleep(readyTime - 1)
		if !full(two) {
			t.Error("the buffer is no longer ready")
		}
		time.Sleep(2 * time.Nanosecond)
		synctest.Wait()
		if full(two) {
			t.Error("the buffer never releases its memory")
		}
		b.Close()
		b.returnBuffer(one)
	})
	// The runtime may map other memory at the address of a buffer, so one try of five has to succeed.
	for range 5 {
		var b LargeBufferPool
		one, two := b.takeBuffer(1<<20), b.takeBuffer(1<<20)
		b.returnBuffer(two)
		b.Close()
		b.returnBuffer(one)
		if unmapped(one) && unmapped(two) {
			return
		}
	}
	t.Error("buffers stay mapped after Close")
}

func unmapped(buf []byte) bool { return syscall.Madvise(buf, syscall.MADV_NORMAL) == syscall.ENOMEM }
