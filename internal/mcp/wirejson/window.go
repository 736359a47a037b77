package wirejson

import (
	"errors"
	"io"
	"runtime"
	"slices"
)

// ErrTooLong is returned for a line or an event that is longer than the bound.
var ErrTooLong = errors.New("the message is longer than the limit")

// ErrCrowded is returned for a line or an event for which its Room has no place.
var ErrCrowded = errors.New("too many large messages come at the same time")

// Room is where messages above largeMessage are read, so that those that come
// at the same time take only so much memory together.
type Room interface {
	// Take returns a buffer of at least n bytes, or nil when there is no place. It
	// may wait.
	Take(n int) []byte
	// Give takes a buffer of Take back.
	Give(buf []byte)
	// Pace is told how much of a large message has been read. It may wait.
	Pace(n int)
}

// largeMessage is the size up to which a message needs no Room, in bytes.
const largeMessage = 1 << 20

// largeBuffer is the size beyond which a buffer is given up after use.
const largeBuffer = 64 << 10

// window is the unread part of a stream: buf[start:end]. It grows as needed,
// but never much beyond max, and shrinks again.
type window struct {
	r          io.Reader
	buf        []byte
	start, end int
	small      int // the size to begin with
	max        int
	room       Room  // nil: messages of any size are read without
	lent       bool  // buf is the room's
	err        error // why there is no more to read
}

func (w *window) bytes() []byte { return w.buf[w.start:w.end] }

func (w *window) len() int { return w.end - w.start }

// drop forgets the first n unread bytes.
func (w *window) drop(n int) {
	w.start += n
	if w.start == w.end {
		w.start, w.end = 0, 0
	}
}

// fill reads more. The unread bytes may move. It returns false, and sets err,
// when there is nothing more; without err there is no place for more.
func (w *window) fill() bool {
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
				w.room.Pace(n)
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

// makeRoom makes room behind end. It returns false when there is no place.
func (w *window) makeRoom() bool {
	size := len(w.buf)
	switch room := size - w.end; {
	case size > largeBuffer && w.len() <= w.small/2:
		w.resize(w.small)
	case room > size/4:
	case w.start > size/2:
		w.end = copy(w.buf, w.bytes())
		w.start = 0
	case room == 0:
		// Somewhat more than max, so that what is too long shows.
		size = max(w.small, min(2*size, w.max+w.small))
		if size <= largeMessage || w.room == nil || w.lent {
			w.resize(size)
			break
		}
		buf := w.room.Take(w.max + w.small)
		if buf == nil {
			return false
		}
		w.move(buf)
		w.lent = true
	}
	if len(w.buf) > largeBuffer {
		// Who sends much is always ready to be read: the others would wait until
		// the scheduler's slice ends.
		runtime.Gosched()
	}
	return true
}

func (w *window) resize(size int) {
	buf := slices.Grow([]byte(nil), size)
	w.move(buf[:cap(buf)])
}

// move makes buf the buffer.
func (w *window) move(buf []byte) {
	w.end = copy(buf, w.bytes())
	w.start = 0
	if w.lent {
		w.room.Give(w.buf)
		w.lent = false
	}
	w.buf = buf
}

// skip drops everything and reads more, of which nothing is wanted. It returns
// false when there is nothing more.
func (w *window) skip() bool {
	w.drop(w.len())
	runtime.Gosched() // as in makeRoom
	if !w.fill() {
		return false
	}
	if w.room != nil {
		w.room.Pace(w.len())
	}
	return true
}

// release gives up the buffer.
func (w *window) release() {
	if w.lent {
		w.room.Give(w.buf)
	}
	w.buf, w.start, w.end, w.lent = nil, 0, 0, false
}

// keep hands a piece of the buffer to the caller for good: a large one with the
// whole buffer, a small one, or one of a buffer that is the room's, as a copy.
func (w *window) keep(piece []byte) []byte {
	if len(piece) < largeBuffer/2 {
		return slices.Clone(piece)
	}
	if w.lent {
		piece = slices.Clone(piece)
	}
	w.resize(max(w.small, w.len()))
	return slices.Clip(piece)
}

// frame is what readers of messages have in common.
type frame struct {
	w     window
	given []byte // what Next returned
}

// Release hands back what has been taken of the room. Nothing can be read after
// that, and what Next returned is no longer valid.
func (f *frame) Release() { f.w.release() }

// Keep returns what Next returned for the caller to keep: the line, or the data
// of the event. It copies a small message only: with a large one the caller gets
// the buffer.
func (f *frame) Keep() []byte {
	kept := f.w.keep(f.given)
	f.given = nil
	return kept
}
