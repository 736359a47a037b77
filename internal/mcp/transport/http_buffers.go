package transport

import (
	"sync"
	"time"
)

// Buffers are the buffers that large messages are read into, all of one size.
// They are used again and again, so that messages without an end do not make a
// heap of garbage. Where the system allows they are outside of the heap, which
// may otherwise grow by as much again before it is collected, and take no
// memory while nobody uses them, but for one that stays ready for a while.
type Buffers struct {
	mu     sync.Mutex // guards what follows
	free   [][]byte   // the last one may have memory
	ready  bool       // it has
	drop   *time.Timer
	closed bool
}

// readyTime is for how long a buffer stays ready that nobody wants.
const readyTime = 2 * time.Second

// take returns a buffer of n bytes, which must always be the same number.
func (b *Buffers) take(n int) []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	last := len(b.free) - 1
	if last < 0 {
		return newBuffer(n)
	}
	buf := b.free[last]
	b.free, b.ready = b.free[:last], false
	return buf
}

// put takes it back. Nothing of it may be used any more.
func (b *Buffers) put(buf []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		endBuffer(buf)
		return
	case b.ready:
		emptyBuffer(buf)
		last := len(b.free) - 1
		b.free = append(b.free, b.free[last])
		b.free[last] = buf
		return
	}
	b.free, b.ready = append(b.free, buf), true
	if b.drop == nil {
		b.drop = time.AfterFunc(readyTime, b.rest)
	}
	b.drop.Reset(readyTime)
}

// rest frees the memory of the buffer that is ready.
func (b *Buffers) rest() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ready {
		emptyBuffer(b.free[len(b.free)-1])
		b.ready = false
	}
}

// Close frees all buffers, and those that are still to be put.
func (b *Buffers) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.drop != nil {
		b.drop.Stop()
	}
	for _, buf := range b.free {
		endBuffer(buf)
	}
	b.free, b.ready, b.closed = nil, false, true
}
