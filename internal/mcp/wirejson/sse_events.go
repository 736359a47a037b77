package wirejson

import (
	"bytes"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"
)

// defaultName is the name of an event that has no name.
const defaultName = "message"

// SSEEvent is one server-sent event.
type SSEEvent struct {
	ID    string // last event ID of the stream; "" if none
	Name  string // "message" by default
	Data  []byte // the data lines, joined by LF
	Retry time.Duration
}

// SSEReader reads server-sent events as WHATWG defines them. It does not repair invalid UTF-8.
type SSEReader struct {
	messageReader
	first    *[firstEventBuffer]byte // initial buffer from the pool; nil after Release
	id       string
	retry    time.Duration
	started  bool // after the first line, where a byte order mark is allowed
	afterCR  bool // an LF at the start of the window completes a CRLF
	skipping bool // skips the rest of an event over the limit
	midLine  bool // the window starts within a line of the skipped event

	// The current event. Offsets count from the start of the window.
	name         string
	hasData      bool
	dataAt, next int // start of the data; start of the next line
	dataTo       int
}

// firstEventBuffer is the size of the pooled buffer, in bytes. Longer events get another buffer.
const firstEventBuffer = 4 << 10

// eventBuffers pools the initial buffers, because most replies are one short event.
var eventBuffers = sync.Pool{New: func() any { return new([firstEventBuffer]byte) }}

// NewSSEReader reads events of at most limit bytes (with their field names)
// from r.
func NewSSEReader(r io.Reader, limit int) *SSEReader {
	return NewSSEReaderWithPool(r, limit, nil)
}

// NewSSEReaderWithPool is like NewSSEReader, but reads large events into buffers of room. The caller must call Release.
func NewSSEReaderWithPool(r io.Reader, limit int, room BufferPool) *SSEReader {
	first := eventBuffers.Get().(*[firstEventBuffer]byte)
	return &SSEReader{messageReader: messageReader{w: readWindow{r: r, buf: first[:], small: firstEventBuffer, max: limit, pool: room}}, first: first}
}

// Release returns the buffers. Nothing can be read afterwards, and the results of Next become invalid.
func (e *SSEReader) Release() {
	e.messageReader.Release()
	if e.first != nil {
		eventBuffers.Put(e.first)
		e.first = nil
	}
}

// LastEventID returns the last event ID of the stream.
func (e *SSEReader) LastEventID() string { return e.id }

// RetryDelay returns the last reconnection time of the stream, 0 if none.
func (e *SSEReader) RetryDelay() time.Duration { return e.retry }

// Next returns the next event. Its data is valid until the next call. If the stream ends within an event, the event is
// dropped.
//
// It returns ErrTooLong if an event exceeds the limit, and ErrNoBuffer if there is no buffer for an event. In both
// cases, the next call skips the rest of the event in constant memory. Any other error is final.
func (e *SSEReader) Next() (SSEEvent, error) {
	e.resetEvent()
	if err := e.skipOversizedEvent(); err != nil {
		return SSEEvent{}, err
	}
	for {
		line, err := e.readLine()
		if err != nil {
			return SSEEvent{}, err
		}
		switch {
		case len(line) > 0:
			e.parseField(line)
		case e.hasData:
			return e.takeEvent(), nil
		default:
			e.name = ""
		}
		if !e.hasData { // there may be any number of comments
			e.w.dropBytes(e.next)
			e.next = 0
		}
	}
}

func (e *SSEReader) resetEvent() {
	e.last, e.name, e.hasData = nil, "", false
	e.next, e.dataAt, e.dataTo = 0, 0, 0
}

func (e *SSEReader) takeEvent() SSEEvent {
	ev := SSEEvent{ID: e.id, Name: e.name, Data: e.w.unreadBytes()[e.dataAt:e.dataTo:e.dataTo], Retry: e.retry}
	if ev.Name == "" {
		ev.Name = defaultName
	}
	e.last = ev.Data
	e.w.dropBytes(e.next)
	return ev
}

// readLine returns the next line of the event and advances e.next.
func (e *SSEReader) readLine() ([]byte, error) {
	seen := e.next
	for {
		if e.afterCR && e.w.unreadLen() > e.next {
			e.afterCR = false
			if e.w.unreadBytes()[e.next] == '\n' {
				e.next++
				seen = e.next
			}
		}
		unread := e.w.unreadBytes()
		if k := indexLineEnd(unread[seen:]); k >= 0 {
			line := unread[e.next : seen+k]
			e.afterCR = unread[seen+k] == '\r'
			e.next = seen + k + 1
			if e.next > e.w.max && len(line) > 0 {
				return nil, e.startSkipping(false)
			}
			return e.trimByteOrderMark(line), nil
		}
		if len(unread) > max(e.w.max, e.next) {
			return nil, e.startSkipping(true)
		}
		seen = len(unread)
		if e.w.fillBuffer() {
			continue
		}
		if e.w.err == nil {
			e.startSkipping(true)
			return nil, ErrNoBuffer
		}
		return nil, e.w.err
	}
}

// indexLineEnd returns the offset of the first LF or CR, or -1.
func indexLineEnd(text []byte) int {
	lf := bytes.IndexByte(text, '\n')
	if lf >= 0 {
		text = text[:lf]
	}
	if cr := bytes.IndexByte(text, '\r'); cr >= 0 {
		return cr
	}
	return lf
}

// trimByteOrderMark removes the byte order mark at the start of a stream.
func (e *SSEReader) trimByteOrderMark(line []byte) []byte {
	if !e.started {
		e.started = true
		line = bytes.TrimPrefix(line, []byte("\ufeff"))
	}
	return line
}

// startSkipping makes the next call skip the event.
func (e *SSEReader) startSkipping(midLine bool) error {
	if midLine {
		e.next = e.w.unreadLen()
	}
	e.w.dropBytes(e.next)
	e.skipping, e.midLine, e.started = true, midLine, true
	return ErrTooLong
}

// skipOversizedEvent drops the rest of an event that was too long, up to an empty line.
func (e *SSEReader) skipOversizedEvent() error {
	for e.skipping {
		unread := e.w.unreadBytes()
		if e.afterCR && len(unread) > 0 {
			e.afterCR = false
			if unread[0] == '\n' {
				e.w.dropBytes(1)
				continue
			}
		}
		k := indexLineEnd(unread)
		if k < 0 {
			e.midLine = e.midLine || len(unread) > 0
			if !e.w.discardAndFill() {
				return e.w.err
			}
			continue
		}
		e.skipping = k > 0 || e.midLine
		e.midLine = false
		e.afterCR = unread[k] == '\r'
		e.w.dropBytes(k + 1)
	}
	return nil
}

// parseField handles one line of an event.
func (e *SSEReader) parseField(line []byte) {
	name, value, _ := bytes.Cut(line, []byte{':'})
	value = bytes.TrimPrefix(value, []byte{' '})
	switch string(name) {
	case "data":
		e.addDataLine(value)
	case "event":
		if string(value) == defaultName {
			e.name = defaultName // avoids an allocation
		} else {
			e.name = string(value)
		}
	case "id":
		if bytes.IndexByte(value, 0) < 0 {
			e.id = string(value)
		}
	case "retry":
		if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
			e.retry = time.Duration(ms) * time.Millisecond
		}
	}
}

// addDataLine adds a data line. The first line stays in place. Later lines are moved after it, over bytes that are
// already read.
func (e *SSEReader) addDataLine(value []byte) {
	unread := e.w.unreadBytes()
	if e.hasData {
		unread[e.dataTo] = '\n'
		e.dataTo += 1 + copy(unread[e.dataTo+1:], value)
		return
	}
	e.hasData = true
	// The value ends at the end of its line.
	e.dataTo = e.next - 1
	e.dataAt = e.dataTo - len(value)
}

// AppendSSEEvent appends data as one event. It omits an empty or invalid ID.
func AppendSSEEvent(dst []byte, id string, data []byte) []byte {
	if id != "" && !strings.ContainsAny(id, "\r\n\x00") {
		dst = append(append(append(dst, "id: "...), id...), '\n')
	}
	dst = append(dst, "event: message\n"...)
	for more := true; more; {
		line := data
		if k := indexLineEnd(data); k < 0 {
			more = false
		} else {
			line = data[:k]
			if bytes.HasPrefix(data[k:], []byte("\r\n")) {
				k++
			}
			data = data[k+1:]
		}
		dst = append(append(append(dst, "data: "...), line...), '\n')
	}
	return append(dst, '\n')
}
