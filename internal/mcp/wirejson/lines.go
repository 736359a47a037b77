package wirejson

import (
	"bytes"
	"io"
)

// LineReader reads the messages of a stdio server: one line each.
type LineReader struct {
	frame
	skipping bool // the rest of a line over the limit
}

// NewLineReader reads lines of at most limit bytes from r.
func NewLineReader(r io.Reader, limit int) *LineReader { return NewLineReaderIn(r, limit, nil) }

// NewLineReaderIn reads large lines into buffers of room. The caller must call Release.
func NewLineReaderIn(r io.Reader, limit int, room BufferPool) *LineReader {
	return &LineReader{frame: frame{w: window{r: r, small: 16 << 10, max: limit, pool: room}}}
}

// Next returns the next line without its LF or CRLF; it may be empty. The slice is valid until the next
// call. The last line needs no line end.
//
// For a line over the limit it returns the beginning and ErrTooLong, for one without a buffer the
// beginning and ErrNoBuffer; the next call skips the rest of it in constant memory. Any other error is
// final.
func (l *LineReader) Next() ([]byte, error) {
	l.last = nil
	if err := l.skip(); err != nil {
		return nil, err
	}
	seen := 0
	for {
		k := bytes.IndexByte(l.w.bytes()[seen:], '\n')
		switch {
		case k >= 0 && seen+k <= l.w.max:
			return l.take(seen+k, 1), nil
		case k >= 0 || l.w.len() > l.w.max:
			l.skipping = true
			return l.take(l.w.max, 0), ErrTooLong
		}
		seen = l.w.len()
		switch {
		case l.w.fill():
		case l.w.err == io.EOF && l.w.len() > 0:
			return l.take(l.w.len(), 0), nil
		case l.w.err == nil:
			l.skipping = true
			return l.take(l.w.len(), 0), ErrNoBuffer
		default:
			return nil, l.w.err
		}
	}
}

// take returns the first n bytes and drops them and the line end.
func (l *LineReader) take(n, end int) []byte {
	line := l.w.bytes()[:n:n]
	l.w.drop(n + end)
	l.last = bytes.TrimSuffix(line, []byte{'\r'})
	return l.last
}

// skip drops the rest of a line over the limit.
func (l *LineReader) skip() error {
	for l.skipping {
		k := bytes.IndexByte(l.w.bytes(), '\n')
		if k >= 0 {
			l.w.drop(k + 1)
			l.skipping = false
			return nil
		}
		if !l.w.skip() {
			return l.w.err
		}
	}
	return nil
}
