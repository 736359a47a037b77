package wirejson

import (
	"bytes"
	"io"
)

// LineReader reads the messages of a stdio server: one line each.
type LineReader struct {
	frame
	skipping bool // the rest of a line that was too long
}

// NewLineReader reads lines of at most limit bytes from r.
func NewLineReader(r io.Reader, limit int) *LineReader { return NewLineReaderIn(r, limit, nil) }

// NewLineReaderIn reads large lines in room. It must be released.
func NewLineReaderIn(r io.Reader, limit int, room Room) *LineReader {
	return &LineReader{frame: frame{w: window{r: r, small: 16 << 10, max: limit, room: room}}}
}

// Next returns the next line, without its end (LF or CRLF); it may be empty. The
// slice is valid until the next call. The last line need not have an end.
//
// For a line that is too long Next returns its beginning and ErrTooLong at once,
// for one that finds no place in the room its beginning and ErrCrowded;
// the next call skips the rest of it, in constant memory, and goes on. Any
// other error, io.EOF or the reader's, is final.
func (l *LineReader) Next() ([]byte, error) {
	l.given = nil
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
			return l.take(l.w.len(), 0), ErrCrowded
		default:
			return nil, l.w.err
		}
	}
}

// take returns the first n unread bytes and drops them and the end of the line.
func (l *LineReader) take(n, end int) []byte {
	line := l.w.bytes()[:n:n]
	l.w.drop(n + end)
	l.given = bytes.TrimSuffix(line, []byte{'\r'})
	return l.given
}

// skip drops the rest of a line that was too long.
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
