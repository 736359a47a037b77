package wirejson

import (
	"errors"
	"io"
	"runtime"
	"slices"
)

// ErrTooLong is the error for a line or an event over the limit.
var ErrTooLong = errors.New("the message is longer than the limit")

// ErrNoBuffer is the error for a line or an event for which the BufferPool has no buffer.
var ErrNoBuffer = errors.New("too many large messages come at the same time")

// BufferPool lends buffers for messages that are larger than largeMessage, so that concurrent large messages share a
// memory limit.
type BufferPool interface {
	// Take returns a buffer of at least n bytes, or nil if there is none. It may block.
	Take(n int) []byte
	// Give returns a buffer to the pool.
	Give(buf []byte)
	// Pace reports the number of bytes that were read of a large message. It may block.
	Pace(n int)
}

// largeMessage is the size above which a message needs a BufferPool, in bytes.
const largeMessage = 1 << 20

// largeBuffer is the size above which a buffer is dropped after use, in bytes.
const largeBuffer = 64 << 10

// readWindow contains the unread bytes of a stream: buf[start:end]. It grows to little more than max, and shrinks
// again.
type readWindow struct {
	r          io.Reader
	buf        []byte
	start, end int
	small      int // initial size
	max        int
	pool       BufferPool // nil if there is no pool for large messages
	lent       bool       // buf belongs to the pool
	err        error      // final read error
}

func (w *readWindow) unreadBytes() []byte { return w.buf[w.start:w.end] }

func (w *readWindow) unreadLen() int { return w.end - w.start }

// dropBytes discards the first n bytes.
func (w *readWindow) dropBytes(n int) {
	w.start += n
	if w.start == w.end {
		w.start, w.end = 0, 0
	}
}

// fillBuffer reads more bytes. The unread bytes may move. It returns false at the end of the stream (then err is set),
// or if there is no buffer.
func (w *readWindow) fillBuffer() bool {
	if w.err != nil {
		return false
	}
	if !w.makeRoom() {
		return false
	}
	for range 100 {
		n, err := w.r.Read(w.buf[w.end:])
		w.end += n
		w.err = err
		if n > 0 {
			if w.lent {
				w.pool.Pace(n)
			}
			return true
		}
		if err != nil {
			return false
		}
	}
	w.err = io.ErrNoProgress
	return false
}

// makeRoom makes free space after end. It returns false if there is no buffer.
func (w *readWindow) makeRoom() bool {
	size := len(w.buf)
	switch room := size - w.end; {
	case size > largeBuffer && w.unreadLen() <= w.small/2:
		w.resize(w.small)
	case room > size/4:
	case w.start > size/2:
		w.end = copy(w.buf, w.unreadBytes())
		w.start = 0
	case room == 0:
		// The size is a little above max, to detect messages over the limit.
		size = max(w.small, min(2*size, w.max+w.small))
		if size <= largeMessage || w.pool == nil || w.lent {
			w.resize(size)
			break
		}
		buf := w.pool.Take(w.max + w.small)
		if buf == nil {
			return false
		}
		w.moveToBuffer(buf)
		w.lent = true
	}
	if len(w.buf) > largeBuffer {
		// Data of a fast sender is always available. Without this call, other goroutines would wait for the end of the
		// time slice.
		runtime.Gosched()
	}
	return true
}

func (w *readWindow) resize(size int) {
	buf := slices.Grow([]byte(nil), size)
	w.moveToBuffer(buf[:cap(buf)])
}

// moveToBuffer replaces the buffer.
func (w *readWindow) moveToBuffer(buf []byte) {
	w.end = copy(buf, w.unreadBytes())
	w.start = 0
	if w.lent {
		w.pool.Give(w.buf)
		w.lent = false
	}
	w.buf = buf
}

// discardAndFill discards all bytes and reads more. It returns false at the end.
func (w *readWindow) discardAndFill() bool {
	w.dropBytes(w.unreadLen())
	runtime.Gosched() // as in makeRoom
	if !w.fillBuffer() {
		return false
	}
	if w.pool != nil {
		w.pool.Pace(w.unreadLen())
	}
	return true
}

// release drops the buffer.
func (w *readWindow) release() {
	if w.lent {
		w.pool.Give(w.buf)
	}
	w.buf, w.start, w.end, w.lent = nil, 0, 0, false
}

// toOwnedBytes makes a piece of the buffer the caller's own. For a large piece, the caller gets the whole buffer. A
// small piece, or a piece of a pooled buffer, is copied.
func (w *readWindow) toOwnedBytes(piece []byte) []byte {
	if len(piece) < largeBuffer/2 {
		return slices.Clone(piece)
	}
	if w.lent {
		piece = slices.Clone(piece)
	}
	w.resize(max(w.small, w.unreadLen()))
	return slices.Clip(piece)
}

// messageReader is the common part of the message readers.
type messageReader struct {
	w    readWindow
	last []byte // result of Next
}

// Release returns the buffer to the pool. Nothing can be read afterwards, and the results of Next become invalid.
func (f *messageReader) Release() { f.w.release() }

// TakeOwnershipOfLast makes the result of Next the caller's own. It copies only small messages: for a large one the
// caller gets the buffer.
func (f *messageReader) TakeOwnershipOfLast() []byte {
	kept := f.w.toOwnedBytes(f.last)
	f.last = nil
	return kept
}
