package transport

import (
	"sync"
	"time"
)

// LargeBufferPool pools buffers of one size for large messages, so that a stream of large messages produces no garbage.
// On Linux the buffers are mapped outside of the heap. Unused buffers release their memory, except one that stays ready
// for a while.
type LargeBufferPool struct {
	mu     sync.Mutex // guards the following fields
	free   [][]byte   // only the last one may have memory
	ready  bool       // the last buffer has memory
	drop   *time.Timer
	closed bool
}

// readyTime is the time for which an unused buffer keeps its memory.
const readyTime = 2 * time.Second

// takeBuffer returns a buffer of n bytes. n must be the same in all calls.
func (b *LargeBufferPool) takeBuffer(n int) []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	last := len(b.free) - 1
	if last < 0 {
		return newLargeBuffer(n)
	}
	buf := b.free[last]
	b.free, b.ready = b.free[:last], false
	return buf
}

// returnBuffer returns a buffer to the pool. It must not be used afterwards.
func (b *LargeBufferPool) returnBuffer(buf []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		freeBuffer(buf)
		return
	case b.ready:
		releaseBufferMemory(buf)
		last := len(b.free) - 1
		b.free = append(b.free, b.free[last])
		b.free[last] = buf
		return
	}
	b.free, b.ready = append(b.free, buf), true
	if b.drop == nil {
		b.drop = time.AfterFunc(readyTime, b.releaseReadyMemory)
	}
	b.drop.Reset(readyTime)
}

// releaseReadyMemory frees the memory of the ready buffer.
func (b *LargeBufferPool) releaseReadyMemory() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ready {
		releaseBufferMemory(b.free[len(b.free)-1])
		b.ready = false
	}
}

// Close frees all buffers, including those that are returned later.
func (b *LargeBufferPool) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.drop != nil {
		b.drop.Stop()
	}
	for _, buf := range b.free {
		freeBuffer(buf)
	}
	b.free, b.ready, b.closed = nil, false, true
}
