package wirejson

import (
	"bytes"
	"io"
)

// LineReader reads the messages of a stdio server: one line each.
type LineReader struct {
	messageReader
	skipping bool // skips the rest of a line over the limit
}

// NewLineReader reads lines of at most limit bytes from r.
func NewLineReader(r io.Reader, limit int) *LineReader { return NewLineReaderWithPool(r, limit, nil) }

// NewLineReaderWithPool is like NewLineReader, but reads large lines into buffers of room. The caller must call
// Release.
func NewLineReaderWithPool(r io.Reader, limit int, room BufferPool) *LineReader {
	return &LineReader{messageReader: messageReader{w: readWindow{r: r, small: 16 << 10, max: limit, pool: room}}}
}

// Next returns the next line without its LF or CRLF. The line may be empty. The slice is valid until the next call. The
// last line needs no line end.
//
// If a line exceeds the limit, it returns the beginning and ErrTooLong. If there is no buffer for a line, it returns
// the beginning and ErrNoBuffer. In both cases, the next call skips the rest of the line in constant memory. Any other
// error is final.
func (l *LineReader) Next() ([]byte, error) {
	l.last = nil
	if err := l.skipOversizedLine(); err != nil {
		return nil, err
	}
	seen := 0
	for {
		k := bytes.IndexByte(l.w.unreadBytes()[seen:], '\n')
		switch {
		case k >= 0 && seen+k <= l.w.max:
			return l.takeLine(seen+k, 1), nil
		case k >= 0 || l.w.unreadLen() > l.w.max:
			l.skipping = true
			return l.takeLine(l.w.max, 0), ErrTooLong
		}
		seen = l.w.unreadLen()
		switch {
		case l.w.fillBuffer():
		case l.w.err == io.EOF && l.w.unreadLen() > 0:
			return l.takeLine(l.w.unreadLen(), 0), nil
		case l.w.err == nil:
			l.skipping = true
			return l.takeLine(l.w.unreadLen(), 0), ErrNoBuffer
		default:
			return nil, l.w.err
		}
	}
}

// takeLine returns the first n bytes and drops them and the line end.
func (l *LineReader) takeLine(n, end int) []byte {
	line := l.w.unreadBytes()[:n:n]
	l.w.dropBytes(n + end)
	l.last = bytes.TrimSuffix(line, []byte{'\r'})
	return l.last
}

// skipOversizedLine drops the rest of a line over the limit.
func (l *LineReader) skipOversizedLine() error {
	for l.skipping {
		k := bytes.IndexByte(l.w.unreadBytes(), '\n')
		if k >= 0 {
			l.w.dropBytes(k + 1)
			l.skipping = false
			return nil
		}
		if !l.w.discardAndFill() {
			return l.w.err
		}
	}
	return nil
}
