package jsonrpc

import (
	"errors"
	"io"
	"slices"
)

// ErrTooLong is returned for a line or an event that is longer than the bound.
var ErrTooLong = errors.New("the message is longer than the limit")

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

// fill reads more. The unread bytes may move. It gives false, and sets err,
// when there is nothing more.
func (w *window) fill() bool {
	if w.err != nil {
		return false
	}
	w.makeRoom()
	for range 100 {
		n, err := w.r.Read(w.buf[w.end:])
		w.end += n
		w.err = err
		if n > 0 {
			return true
		}
		if err != nil {
			return false
		}
	}
	w.err = io.ErrNoProgress
	return false
}

// makeRoom makes room behind end.
func (w *window) makeRoom() {
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
		w.resize(max(w.small, min(2*size, w.max+w.small)))
	}
}

func (w *window) resize(size int) {
	buf := slices.Grow([]byte(nil), size)
	buf = buf[:cap(buf)]
	w.end = copy(buf, w.bytes())
	w.start, w.buf = 0, buf
}

// keep gives a piece of the buffer to the caller for good: a large one with the
// whole buffer, a small one as a copy.
func (w *window) keep(piece []byte) []byte {
	if len(piece) < largeBuffer/2 {
		return slices.Clone(piece)
	}
	w.resize(max(w.small, w.len()))
	return slices.Clip(piece)
}
