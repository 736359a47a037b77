package wirejson

import (
	"bytes"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"
)

// defaultName is the name of events without one.
const defaultName = "message"

// Event is one server-sent event.
type Event struct {
	ID    string // the last id that the stream has given, "" when none
	Name  string // "message" when the stream gives none
	Data  []byte // the data lines, joined by LF
	Retry time.Duration
}

// EventReader reads server-sent events by the rules of WHATWG: lines end with
// LF, CR or CRLF, an event ends with an empty line and is given only when it
// has data, comments and unknown fields are ignored. It does not repair text
// that is no UTF-8.
type EventReader struct {
	frame
	first    *[firstEvents]byte // what is read into at first; nil: it was handed back
	id       string
	retry    time.Duration
	begun    bool // a line was read: there is no byte order mark any more
	afterCR  bool // an LF at the start of the window belongs to a CR before it
	skipping bool // the rest of an event that was too long
	midLine  bool // the window starts within a line of the event that is skipped

	// The event that is being read. Offsets count from the window's start.
	name         string
	hasData      bool
	dataAt, next int // where the data begins; where the next line begins
	dataTo       int
}

// firstEvents is the size of the memory that events are read into, unless they are longer.
const firstEvents = 4 << 10

// firsts lends that memory: most answers are one short event, and are read in a moment.
var firsts = sync.Pool{New: func() any { return new([firstEvents]byte) }}

// NewEventReader reads events of at most limit bytes (with their field names)
// from r.
func NewEventReader(r io.Reader, limit int) *EventReader { return NewEventReaderIn(r, limit, nil) }

// NewEventReaderIn reads large events in room. It must be released.
func NewEventReaderIn(r io.Reader, limit int, room Room) *EventReader {
	first := firsts.Get().(*[firstEvents]byte)
	return &EventReader{frame: frame{w: window{r: r, buf: first[:], small: firstEvents, max: limit, room: room}}, first: first}
}

// Release hands back what was taken. Nothing can be read after that, and what Next
// returned is no longer valid.
func (e *EventReader) Release() {
	e.frame.Release()
	if e.first != nil {
		firsts.Put(e.first)
		e.first = nil
	}
}

// LastID is the last event id that the stream has given, in whatever event.
func (e *EventReader) LastID() string { return e.id }

// Retry is the last reconnection time that the stream has given, in whatever
// event; 0 when none.
func (e *EventReader) Retry() time.Duration { return e.retry }

// Next returns the next event. Its data is valid until the next call. An event
// that the end of the stream cuts off is not given.
//
// For an event that is too long it returns ErrTooLong at once, for one that
// finds no place in the room ErrCrowded; the next call skips the rest of it, in
// constant memory, and goes on. Any other error, io.EOF or the reader's, is
// final.
func (e *EventReader) Next() (Event, error) {
	e.reset()
	if err := e.skip(); err != nil {
		return Event{}, err
	}
	for {
		line, err := e.line()
		if err != nil {
			return Event{}, err
		}
		switch {
		case len(line) > 0:
			e.field(line)
		case e.hasData:
			return e.dispatch(), nil
		default:
			e.name = ""
		}
		if !e.hasData { // nothing to remember: comments may go on for ever
			e.w.drop(e.next)
			e.next = 0
		}
	}
}

func (e *EventReader) reset() {
	e.given, e.name, e.hasData = nil, "", false
	e.next, e.dataAt, e.dataTo = 0, 0, 0
}

func (e *EventReader) dispatch() Event {
	ev := Event{ID: e.id, Name: e.name, Data: e.w.bytes()[e.dataAt:e.dataTo:e.dataTo], Retry: e.retry}
	if ev.Name == "" {
		ev.Name = defaultName
	}
	e.given = ev.Data
	e.w.drop(e.next)
	return ev
}

// line returns the next line of the event and sets e.next behind its end.
func (e *EventReader) line() ([]byte, error) {
	seen := e.next
	for {
		if e.afterCR && e.w.len() > e.next {
			e.afterCR = false
			if e.w.bytes()[e.next] == '\n' {
				e.next++
				seen = e.next
			}
		}
		unread := e.w.bytes()
		if k := lineEnd(unread[seen:]); k >= 0 {
			line := unread[e.next : seen+k]
			e.afterCR = unread[seen+k] == '\r'
			e.next = seen + k + 1
			if e.next > e.w.max && len(line) > 0 {
				return nil, e.tooLong(false)
			}
			return e.withoutMark(line), nil
		}
		if len(unread) > max(e.w.max, e.next) {
			return nil, e.tooLong(true)
		}
		seen = len(unread)
		if e.w.fill() {
			continue
		}
		if e.w.err == nil {
			e.tooLong(true)
			return nil, ErrCrowded
		}
		return nil, e.w.err
	}
}

// lineEnd returns the offset of the first LF or CR, or -1.
func lineEnd(text []byte) int {
	lf := bytes.IndexByte(text, '\n')
	if lf >= 0 {
		text = text[:lf]
	}
	if cr := bytes.IndexByte(text, '\r'); cr >= 0 {
		return cr
	}
	return lf
}

// withoutMark removes the byte order mark with which a stream may begin.
func (e *EventReader) withoutMark(line []byte) []byte {
	if !e.begun {
		e.begun = true
		line = bytes.TrimPrefix(line, []byte("\ufeff"))
	}
	return line
}

// tooLong makes the next call skip the event.
func (e *EventReader) tooLong(midLine bool) error {
	if midLine {
		e.next = e.w.len()
	}
	e.w.drop(e.next)
	e.skipping, e.midLine, e.begun = true, midLine, true
	return ErrTooLong
}

// skip drops the rest of an event that was too long, up to an empty line.
func (e *EventReader) skip() error {
	for e.skipping {
		unread := e.w.bytes()
		if e.afterCR && len(unread) > 0 {
			e.afterCR = false
			if unread[0] == '\n' {
				e.w.drop(1)
				continue
			}
		}
		k := lineEnd(unread)
		if k < 0 {
			e.midLine = e.midLine || len(unread) > 0
			if !e.w.skip() {
				return e.w.err
			}
			continue
		}
		e.skipping = k > 0 || e.midLine
		e.midLine = false
		e.afterCR = unread[k] == '\r'
		e.w.drop(k + 1)
	}
	return nil
}

// field takes one line that is not empty.
func (e *EventReader) field(line []byte) {
	name, value, _ := bytes.Cut(line, []byte{':'})
	value = bytes.TrimPrefix(value, []byte{' '})
	switch string(name) {
	case "data":
		e.addData(value)
	case "event":
		if string(value) == defaultName {
			e.name = defaultName // the usual one costs no allocation
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

// addData adds a data line. The first one stays where it is; further ones move
// up behind it, into bytes that have been read.
func (e *EventReader) addData(value []byte) {
	unread := e.w.bytes()
	if e.hasData {
		unread[e.dataTo] = '\n'
		e.dataTo += 1 + copy(unread[e.dataTo+1:], value)
		return
	}
	e.hasData = true
	// value ends where its line does.
	e.dataTo = e.next - 1
	e.dataAt = e.dataTo - len(value)
}

// AppendEvent appends the framing of one message to dst. The id is left out
// when it is empty or cannot be written.
func AppendEvent(dst []byte, id string, data []byte) []byte {
	if id != "" && !strings.ContainsAny(id, "\r\n\x00") {
		dst = append(append(append(dst, "id: "...), id...), '\n')
	}
	dst = append(dst, "event: message\n"...)
	for more := true; more; {
		line := data
		if k := lineEnd(data); k < 0 {
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
