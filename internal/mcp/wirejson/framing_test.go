package wirejson

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// readers returns readers that split the same bytes into different portions.
func readers(data []byte) map[string]io.Reader {
	return map[string]io.Reader{
		"whole":     bytes.NewReader(data),
		"bytewise":  iotest.OneByteReader(bytes.NewReader(data)),
		"halves":    iotest.HalfReader(bytes.NewReader(data)),
		"data, EOF": iotest.DataErrReader(bytes.NewReader(data)),
	}
}

// lines reads all lines. A line that is too long becomes "!" and its beginning.
func lines(r io.Reader, limit int) ([]string, error) {
	var all []string
	l := NewLineReader(r, limit)
	for {
		line, err := l.Next()
		switch {
		case err == ErrTooLong:
			all = append(all, "!"+string(line))
		case err != nil:
			return all, err
		default:
			all = append(all, string(line))
		}
	}
}

func TestLineReader(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"none", "", nil},
		{"lines", "a\nbc\n", []string{"a", "bc"}},
		{"no end", "a\nbc", []string{"a", "bc"}},
		{"CRLF", "a\r\nb\rc\r\n", []string{"a", "b\rc"}},
		{"empty lines", "\n\r\na\n\n", []string{"", "", "a", ""}},
		{"at the limit", "12345678\n12345678\n", []string{"12345678", "12345678"}},
		{"over the limit", "a\n123456789\nb\n", []string{"a", "!12345678", "b"}},
		{"far over the limit", "a\n" + strings.Repeat("123456789", 10_000) + "\nb\n", []string{"a", "!12345678", "b"}},
		{"over the limit at the end", "123456789", []string{"!12345678"}},
		{"twice over the limit", "123456789\n123456789\n\n", []string{"!12345678", "!12345678", ""}},
	} {
		for how, r := range readers([]byte(c.text)) {
			got, err := lines(r, 8)
			if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", c.want) || err != io.EOF {
				t.Errorf("%s, %s: %q %v, want %q", c.name, how, got, err, c.want)
			}
		}
	}
}

func TestReadersFail(t *testing.T) {
	broken := errors.New("broken pipe")
	stream := func(text string) io.Reader {
		return io.MultiReader(strings.NewReader(text), iotest.ErrReader(broken))
	}
	if got, err := lines(stream("a\nb"), 8); len(got) != 1 || err != broken {
		t.Errorf("lines: %q %v", got, err)
	}
	if got, err := lines(stream("a\n123456789"), 8); len(got) != 2 || err != broken {
		t.Errorf("lines: %q %v", got, err)
	}
	if got, err := events(stream("data:a\n\ndata:b\n"), 8); len(got) != 1 || err != broken {
		t.Errorf("events: %q %v", got, err)
	}
	if got, err := events(stream("data:123456789"), 8); len(got) != 1 || err != broken {
		t.Errorf("events: %q %v", got, err)
	}
	if _, err := NewLineReader(stuck{}, 8).Next(); err != io.ErrNoProgress {
		t.Errorf("a reader that returns no data: %v", err)
	}
}

// stuck is a reader that returns no data and no error, which io.Reader discourages.
type stuck struct{}

func (stuck) Read([]byte) (int, error) { return 0, nil }

// TestKeep checks that a line does not change after TakeOwnershipOfLast.
func TestKeep(t *testing.T) {
	var text, sse bytes.Buffer
	var want []string
	for i := range 60 {
		line := strings.Repeat(fmt.Sprint(i, " "), 1+i*i*20)
		want = append(want, line)
		fmt.Fprintf(&text, "%s\n", line)
		fmt.Fprintf(&sse, "data: %s\n\n", line)
	}
	l, e := NewLineReader(&text, 1<<20), NewSSEReader(&sse, 1<<20)
	var gotLines, gotEvents [][]byte
	for range want {
		if _, err := l.Next(); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Next(); err != nil {
			t.Fatal(err)
		}
		gotLines, gotEvents = append(gotLines, l.TakeOwnershipOfLast()), append(gotEvents, e.TakeOwnershipOfLast())
	}
	for i := range want {
		if string(gotLines[i]) != want[i] || string(gotEvents[i]) != want[i] {
			t.Fatalf("line %d of %d bytes has changed", i, len(want[i]))
		}
	}
}

// endless returns a reader of start, n bytes of filler, and end.
func endless(start string, n int64, end string) io.Reader {
	return io.MultiReader(strings.NewReader(start), io.LimitReader(filler{}, n), strings.NewReader(end))
}

type filler struct{}

func (filler) Read(p []byte) (int, error) {
	clear(p) // any filler works
	return len(p), nil
}

// TestMemoryIsBounded checks that a line or event of any length needs no more memory than the limit, and that a large
// buffer is released.
func TestMemoryIsBounded(t *testing.T) {
	const limit, huge = 1 << 20, 256 << 20
	allocated := func(f func()) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f()
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	l := NewLineReader(endless("a\n", huge, "\nb\n"), limit)
	e := NewSSEReader(endless("data: a\n\ndata: ", huge, "\n\n: a comment\ndata: b\n\n"), limit)
	n := allocated(func() {
		for _, want := range []error{nil, ErrTooLong, nil, io.EOF} {
			if _, err := l.Next(); err != want {
				t.Errorf("line: %v, want %v", err, want)
			}
			if _, err := e.Next(); err != want {
				t.Errorf("event: %v, want %v", err, want)
			}
		}
	})
	if n > 16*limit {
		t.Errorf("%d bytes were allocated", n)
	}
	if len(l.w.buf) > largeBuffer || len(e.w.buf) > largeBuffer {
		t.Errorf("buffers of %d and %d bytes were not released", len(l.w.buf), len(e.w.buf))
	}
	// Comments without an event in between must not count towards a limit.
	comments := NewSSEReader(endless(strings.Repeat(": still here\n", 200_000), 0, "data: a\n\n"), 4096)
	if ev, err := comments.Next(); err != nil || string(ev.Data) != "a" {
		t.Errorf("after comments: %q %v", ev.Data, err)
	}
}

// events reads all events. An event that is too long becomes "!".
func events(r io.Reader, limit int) ([]string, error) {
	var all []string
	e := NewSSEReader(r, limit)
	for {
		ev, err := e.Next()
		switch {
		case err == ErrTooLong:
			all = append(all, "!")
		case err != nil:
			if e.RetryDelay() > 0 || e.LastEventID() != "" {
				all = append(all, fmt.Sprint("last ", e.LastEventID(), " ", e.RetryDelay()))
			}
			return all, err
		default:
			all = append(all, fmt.Sprintf("%s|%s|%s|%v", ev.ID, ev.Name, ev.Data, ev.Retry))
		}
	}
}

func TestEventReader(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"none", "", nil},
		{"data", "data: a\n\ndata:b\n\n", []string{"|message|a|0s", "|message|b|0s"}},
		{"fields", "id: 7\nevent: endpoint\ndata: /m\nretry: 1500\n\n", []string{"7|endpoint|/m|1.5s", "last 7 1.5s"}},
		{"id stays", "id: 7\ndata: a\n\ndata: b\n\nid\ndata: c\n\n", []string{"7|message|a|0s", "7|message|b|0s", "|message|c|0s"}},
		{"name does not stay", "event: x\n\ndata: a\n\nevent: y\ndata: b\n\ndata: c\n\n", []string{"|message|a|0s", "|y|b|0s", "|message|c|0s"}},
		{"several data lines", "data: a\ndata\ndata:  b \nid: 1\ndata: cc\n\n", []string{"1|message|a\n\n b \ncc|0s", "last 1 0s"}},
		{"empty data", "id: 1\ndata:\n\ndata\n\n", []string{"1|message||0s", "1|message||0s", "last 1 0s"}},
		{"no data", "id: 1\nretry: 10\n\nevent: x\n\n", []string{"last 1 10ms"}},
		{"comments and unknown fields", ": ping\n\n:\nfoo: bar\nfoo\n data: x\nDATA: x\ndata: a\n: b\n\n", []string{"|message|a|0s"}},
		{"CR", "data: a\rdata: b\r\rdata: c\r\r", []string{"|message|a\nb|0s", "|message|c|0s"}},
		{"CRLF", "data: a\r\ndata: b\r\n\r\ndata: c\r\n\r\n", []string{"|message|a\nb|0s", "|message|c|0s"}},
		{"mixed", "data: a\r\ndata: b\n\rdata: c\r\n\ndata: d\n\n", []string{"|message|a\nb|0s", "|message|c|0s", "|message|d|0s"}},
		{"LF CR is two ends", "data: a\n\rdata: b\n\r", []string{"|message|a|0s", "|message|b|0s"}},
		{"BOM", "\ufeffdata: a\n\n\ufeffdata: b\n\ndata: \ufeffc\n\n", []string{"|message|a|0s", "|message|\ufeffc|0s"}},
		{"cut off", "data: a\n\ndata: b\n", []string{"|message|a|0s"}},
		{"bad id and retry", "id: a\x00b\nretry: 1.5\nretry: -1\nretry:\nretry: 99999999999999999999\ndata: x\n\n", []string{"|message|x|0s"}},
		{"colons", "data: a: b\ndata::c\n\n", []string{"|message|a: b\n:c|0s"}},
	} {
		for how, r := range readers([]byte(c.text)) {
			got, err := events(r, 64)
			if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", c.want) || err != io.EOF {
				t.Errorf("%s, %s:\ngot  %q %v\nwant %q", c.name, how, got, err, c.want)
			}
		}
	}
}

func TestEventsOverTheLimit(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"at the limit", "data: 90123456\n\ndata: b\n\n", []string{"|message|90123456|0s", "|message|b|0s"}},
		{"one line", "data: 901234567\n\ndata: b\n\n", []string{"!", "|message|b|0s"}},
		{"one line, CRLF", "data: 901234567\r\n\r\ndata: b\r\n\r\n", []string{"!", "|message|b|0s"}},
		{"one line, CR", "data: 901234567\r\rdata: b\r\r", []string{"!", "|message|b|0s"}},
		{"lines", "data: 1\ndata: 2\ndata: 3\ndata: 4\n\ndata: b\n\n", []string{"!", "|message|b|0s"}},
		{"long", "data: " + strings.Repeat("123456789\n", 3000) + "\ndata: b\n\n", []string{"!", "|message|b|0s"}},
		{"long comment", ": " + strings.Repeat("123456789", 3000) + "\n\ndata: b\n\n", []string{"!", "|message|b|0s"}},
		{"at the end", "data: 9012345678", []string{"!"}},
		{"twice", "data: 901234567\n\ndata: 901234567\n\n", []string{"!", "!"}},
	} {
		for how, r := range readers([]byte(c.text)) {
			if got, err := events(r, 15); fmt.Sprintf("%q", got) != fmt.Sprintf("%q", c.want) || err != io.EOF {
				t.Errorf("%s, %s:\ngot  %q %v\nwant %q", c.name, how, got, err, c.want)
			}
		}
	}
}

// slowEvents is a simple implementation of the WHATWG rules.
func slowEvents(text string) []string {
	text = strings.TrimPrefix(text, "\ufeff")
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	var all []string
	var data, name, id string
	var retry time.Duration
	split := strings.Split(text, "\n")
	for _, line := range split[:len(split)-1] {
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "" && data != "":
			if name == "" {
				name = "message"
			}
			all = append(all, fmt.Sprintf("%s|%s|%s|%v", id, name, strings.TrimSuffix(data, "\n"), retry))
			data, name = "", ""
		case line == "":
			name = ""
		case field == "data":
			data += value + "\n"
		case field == "event":
			name = value
		case field == "id" && !strings.Contains(value, "\x00"):
			id = value
		case field == "retry":
			var ms uint32
			if n, _ := fmt.Sscanf("x"+value, "x%d", &ms); n == 1 && strings.Trim(value, "0123456789") == "" && ms < 1<<31 {
				retry = time.Duration(ms) * time.Millisecond
			}
		}
	}
	if retry > 0 || id != "" {
		all = append(all, fmt.Sprint("last ", id, " ", retry))
	}
	return all
}

func FuzzEventReader(f *testing.F) {
	f.Add([]byte("\ufeffid: 1\r\nevent: x\rdata: a\ndata\n\n: c\nretry: 5\n\n"), uint8(64))
	f.Add([]byte("data: a\r\n\r\ndata: b\n\r\r\n"), uint8(3))
	f.Fuzz(func(t *testing.T, data []byte, limit uint8) {
		want := fmt.Sprintf("%q", slowEvents(string(data)))
		var short []string
		for how, r := range readers(data) {
			if got, err := events(r, 1<<20); fmt.Sprintf("%q", got) != want || err != io.EOF {
				t.Fatalf("%q, %s:\ngot  %q %v\nwant %s", data, how, got, err, want)
			}
		}
		for how, r := range readers(data) { // with a limit, the result is the same for all portions
			got, err := events(r, int(limit))
			if err != io.EOF || short != nil && fmt.Sprint(got) != fmt.Sprint(short) {
				t.Fatalf("%q, %s, limit %d:\ngot  %q %v\nalso %q", data, how, limit, got, err, short)
			}
			short = append([]string{}, got...)
		}
	})
}

func FuzzLineReader(f *testing.F) {
	f.Add([]byte("a\r\nb\n\nccccccccc\nd"), uint8(4))
	f.Fuzz(func(t *testing.T, data []byte, limit uint8) {
		var want []string
		for line := range strings.Lines(string(data)) {
			line = strings.TrimSuffix(line, "\n")
			if len(line) > int(limit) {
				line = "!" + line[:limit]
			}
			want = append(want, strings.TrimSuffix(line, "\r"))
		}
		for how, r := range readers(data) {
			if got, err := lines(r, int(limit)); fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) || err != io.EOF {
				t.Fatalf("%q, %s, limit %d:\ngot  %q %v\nwant %q", data, how, limit, got, err, want)
			}
		}
	})
}

func TestAppendEvent(t *testing.T) {
	for _, c := range []struct{ id, data, want string }{
		{"", `{"a":1}`, "event: message\ndata: {\"a\":1}\n\n"},
		{"7_1", "a\nb\r\nc\rd", "id: 7_1\nevent: message\ndata: a\ndata: b\ndata: c\ndata: d\n\n"},
		{"1\ndata: x", "", "event: message\ndata: \n\n"},
		{"", " a\n", "event: message\ndata:  a\ndata: \n\n"},
	} {
		got := AppendSSEEvent([]byte("x"), c.id, []byte(c.data))
		if string(got) != "x"+c.want {
			t.Errorf("got  %q\nwant %q", got, c.want)
		}
		ev, err := NewSSEReader(bytes.NewReader(got[1:]), 1<<20).Next()
		joined := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(c.data)
		if err != nil || string(ev.Data) != joined || ev.Name != "message" {
			t.Errorf("event of %q: got %q %v", c.data, ev.Data, err)
		}
	}
}

// TestFramingDoesNotAllocate checks that a message allocates nothing after the start, except the event's id.
func TestFramingDoesNotAllocate(t *testing.T) {
	const n = 1000
	line := append(call(), '\n')
	l := NewLineReader(bytes.NewReader(bytes.Repeat(line, n+2)), 1<<20)
	e := NewSSEReader(bytes.NewReader(bytes.Repeat(AppendSSEEvent(nil, "", call()), n+2)), 1<<20)
	if allocs := testing.AllocsPerRun(n, func() {
		if _, err := l.Next(); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Next(); err != nil {
			t.Fatal(err)
		}
	}); allocs > 0 {
		t.Errorf("%v allocations per message", allocs)
	}
	var buf []byte
	if allocs := testing.AllocsPerRun(n, func() { buf = AppendSSEEvent(buf[:0], "", line) }); allocs > 0 {
		t.Errorf("%v allocations per event", allocs)
	}
}

func BenchmarkFraming(b *testing.B) {
	for _, c := range []struct {
		name string
		size int
	}{{"1KB", 1000}, {"10MB", 10_000_000}} {
		message := reply(c.size)
		b.Run("lines "+c.name, func(b *testing.B) {
			b.SetBytes(int64(len(message)))
			b.ReportAllocs()
			l := NewLineReader(&repeater{text: append(message, '\n')}, 64<<20)
			for b.Loop() {
				if _, err := l.Next(); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("events "+c.name, func(b *testing.B) {
			b.SetBytes(int64(len(message)))
			b.ReportAllocs()
			e := NewSSEReader(&repeater{text: AppendSSEEvent(nil, "", message)}, 64<<20)
			for b.Loop() {
				if _, err := e.Next(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// repeater is a reader that repeats a text without end.
type repeater struct {
	text []byte
	at   int
}

func (r *repeater) Read(p []byte) (int, error) {
	n := copy(p, r.text[r.at:])
	r.at = (r.at + n) % len(r.text)
	return n, nil
}

// oneRoom is a BufferPool with room for one message, unless it is full.
type oneRoom struct {
	full  bool
	taken int
	most  int
	paced int
}

func (r *oneRoom) Pace(n int) { r.paced += n }

func (r *oneRoom) Take(n int) []byte {
	if r.full {
		return nil
	}
	r.taken++
	r.most = max(r.most, n)
	return make([]byte, n)
}

func (r *oneRoom) Give(buf []byte) {
	r.taken--
	clear(buf) // the buffer now belongs to another reader
}

// TestLargeMessagesUseTheSharedBuffer checks that large messages are read into the shared buffer and release it
// afterwards, and that owned messages do not change.
func TestLargeMessagesUseTheSharedBuffer(t *testing.T) {
	const limit = 4 << 20
	texts := []string{strings.Repeat("a", 10), strings.Repeat("b", 3<<20), strings.Repeat("c", largeMessage/2), strings.Repeat("d", 2<<20), "e"}
	for _, full := range []bool{false, true} {
		var lines, events bytes.Buffer
		for _, text := range texts {
			fmt.Fprintf(&lines, "%s\n", text)
			fmt.Fprintf(&events, "data: %s\n\n", text)
		}
		inLines, inEvents := &oneRoom{full: full}, &oneRoom{full: full}
		l, e := NewLineReaderWithPool(&lines, limit, inLines), NewSSEReaderWithPool(&events, limit, inEvents)
		for name, read := range map[string]func() ([]byte, error){
			"lines":  func() ([]byte, error) { _, err := l.Next(); return l.TakeOwnershipOfLast(), err },
			"events": func() ([]byte, error) { _, err := e.Next(); return e.TakeOwnershipOfLast(), err },
		} {
			var got [][]byte
			for _, text := range texts {
				data, err := read()
				var want error
				if full && len(text) > largeMessage {
					want, data = ErrNoBuffer, []byte(text)
				}
				if err != want {
					t.Fatalf("%s, full %v: error %v for %d bytes", name, full, err, len(text))
				}
				got = append(got, data)
			}
			if _, err := read(); err != io.EOF {
				t.Errorf("%s: %v at the end", name, err)
			}
			for i, text := range texts {
				if string(got[i]) != text {
					t.Errorf("%s, full %v: message %d of %d bytes has changed", name, full, i, len(text))
				}
			}
		}
		for name, room := range map[string]*oneRoom{"lines": inLines, "events": inEvents} {
			if room.taken != 0 || !full && room.most < limit {
				t.Errorf("%s: %d buffers of up to %d bytes were not returned", name, room.taken, room.most)
			}
			if room.paced < 2<<20 { // the part of the two large messages beyond the first chunk
				t.Errorf("%s: Pace reported %d bytes", name, room.paced)
			}
		}
	}
}

// TestReleaseReturnsTheSharedBuffer checks that a reader that stops in the middle of a message returns the memory.
func TestReleaseReturnsTheSharedBuffer(t *testing.T) {
	room := &oneRoom{}
	text := strings.Repeat("x", 2<<20)
	l := NewLineReaderWithPool(strings.NewReader(text), 1<<22, room)
	e := NewSSEReaderWithPool(strings.NewReader("data: "+text), 1<<22, room)
	if _, err := e.Next(); err != io.EOF || room.taken != 1 {
		t.Errorf("%v, %d buffers were not returned", err, room.taken)
	}
	e.Release()
	if line, err := l.Next(); err != nil || len(line) != len(text) || room.taken != 1 {
		t.Errorf("%d bytes, %v, %d buffers were not returned", len(line), err, room.taken)
	}
	l.Release()
	l.Release()
	if room.taken != 0 {
		t.Errorf("%d buffers were not returned", room.taken)
	}
}
