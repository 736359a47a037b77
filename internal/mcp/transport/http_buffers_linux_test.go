package transport

import (
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// One buffer stays ready for a while; the memory of the others is returned, so that they read as zeros. In the end all are
// unmapped.
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
			t.Errorf("ready: %v and %v", full(one), full(two))
		}
		if buf := b.takeBuffer(n); &buf[0] != &one[0] {
			t.Error("the one that is ready is not taken")
		}
		if buf := b.takeBuffer(n); &buf[0] != &two[0] {
			t.Error("the other one is not used again")
		}
		b.returnBuffer(fill(two))
		time.Sleep(readyTime - 1)
		if !full(two) {
			t.Error("it is not ready any more")
		}
		time.Sleep(2 * time.Nanosecond)
		synctest.Wait()
		if full(two) {
			t.Error("it has its memory for ever")
		}
		b.Close()
		b.returnBuffer(one)
	})
	// The runtime may map something where a buffer was, so one try of five has to succeed.
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
