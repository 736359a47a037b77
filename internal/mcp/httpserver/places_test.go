package httpserver

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

const (
	plainRequest = plainHead + "Content-Length: 2\r\n\r\n{}"
	otherRequest = "GET /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
)

// slowly contains the ways to keep a connection with little traffic.
var slowly = map[string]string{
	"nothing":                         "",
	"half a head":                     plainHead,
	"half a head at net/http":         "GET /mcp HTTP/1.1\r\nHos",
	"half a body":                     plainHead + "Content-Length: 900\r\n\r\n{",
	"half a body at net/http":         "PUT /api HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 900\r\n\r\n{",
	"half a body in chunks":           plainHead + "Transfer-Encoding: chunked\r\n\r\n2\r\n{",
	"a refused body":                  plainHead + "X-Refuse: 1\r\nContent-Length: 200000\r\n\r\n{",
	"a refused body at net/http":      "PUT /api HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Refuse: 1\r\nContent-Length: 200000\r\n\r\n{",
	"a refused long body at net/http": "PUT /api HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Refuse: 1\r\nContent-Length: 200000000\r\n\r\n{",
}

// reads is a handler that reads the body, unless the request asks it to reject the body.
func reads(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("X-Refuse") != "" {
		w.Header().Set("Connection", "close")
		http.Error(w, "no", http.StatusForbidden)
		return
	}
	if _, err := io.ReadAll(r.Body); errors.Is(err, os.ErrDeadlineExceeded) {
		http.Error(w, "late", http.StatusRequestTimeout)
	}
}

// patient sets time limits that no test reaches.
func patient(o *Options) { o.HeaderTime, o.BodyTime = time.Minute, time.Minute }

// TestSlowOnesMakeRoom checks that twice as many slow connections as slots exclude no client, neither a connected nor a
// new one.
func TestSlowOnesMakeRoom(t *testing.T) {
	for name, raw := range slowly {
		t.Run(name, func(t *testing.T) {
			s := serveOn(t, listen(t), reads, patient)
			answered := func(nc net.Conn, br *bufio.Reader, request string) {
				t.Helper()
				io.WriteString(nc, request)
				if resp, _ := readAnswer(t, br); resp.StatusCode != http.StatusOK {
					t.Errorf("status %d", resp.StatusCode)
				}
			}
			var conns [4]net.Conn
			var readers [4]*bufio.Reader
			request := func(i int) string { return []string{plainRequest, otherRequest}[i%2] }
			for i := range conns {
				conns[i], readers[i] = dialRaw(t, s.addr)
				answered(conns[i], readers[i], request(i))
			}
			for range 2 * s.plain.MaxConns {
				nc, _ := dialRaw(t, s.addr)
				io.WriteString(nc, raw)
			}
			for i := range 10 {
				nc, br := dialRaw(t, s.addr)
				answered(nc, br, request(i))
				answered(nc, br, request(i))
			}
			for i := range conns {
				answered(conns[i], readers[i], request(i))
			}
		})
	}
}

// TestUnreadBodyEnds checks that a client that gets a response before its body has arrived cannot keep the connection
// by sending the body slowly.
func TestUnreadBodyEnds(t *testing.T) {
	s := serveOn(t, listen(t), func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Close") != "" {
			w.Header().Set("Connection", "close")
		}
		http.Error(w, "no", http.StatusForbidden)
	}, patient)
	for _, head := range []string{plainHead, plainHead + "X-Close: 1\r\n", "PUT /api HTTP/1.1\r\nHost: a\r\n", "PUT /api HTTP/1.1\r\nHost: a\r\nX-Close: 1\r\n"} {
		for _, length := range []string{"Content-Length: 100", "Content-Length: 200000", "Content-Length: 100000000", "Transfer-Encoding: chunked"} {
			t.Run(fmt.Sprintf("%.3s %s %v", head, length, strings.Contains(head, "X-Close")), func(t *testing.T) {
				t.Parallel()
				nc, br := dialRaw(t, s.addr)
				io.WriteString(nc, head+length+"\r\n\r\n3\r\n")
				if resp, _ := readAnswer(t, br); resp.StatusCode != http.StatusForbidden {
					t.Errorf("status %d", resp.StatusCode)
				}
				if _, err := br.ReadByte(); err != io.EOF && !errors.Is(err, syscall.ECONNRESET) {
					t.Errorf("the connection is still open: %v", err)
				}
			})
		}
	}
}

// TestBodyTime checks that a body must arrive in time, whether this package or net/http reads it.
func TestBodyTime(t *testing.T) {
	s := serveOn(t, listen(t), reads, func(o *Options) { o.BodyTime = 50 * time.Millisecond })
	for name, raw := range slowly {
		if !strings.HasPrefix(name, "half a body") {
			continue
		}
		nc, br := dialRaw(t, s.addr)
		io.WriteString(nc, raw)
		if resp, _ := readAnswer(t, br); resp.StatusCode != http.StatusRequestTimeout {
			t.Errorf("%s: status %d", name, resp.StatusCode)
		}
		if _, err := br.ReadByte(); err != io.EOF && !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%s: after the response: %v", name, err)
		}
	}
}

// TestStreamsHaveTime checks that, after a complete request, a client may read a stream for longer than any of the time
// limits.
func TestStreamsHaveTime(t *testing.T) {
	const bound = 50 * time.Millisecond
	s := serveOn(t, listen(t), func(w http.ResponseWriter, r *http.Request) {
		io.ReadAll(r.Body)
		for i := range 5 {
			select {
			case <-r.Context().Done():
				t.Error("the stream was interrupted")
				return
			case <-time.After(bound):
			}
			fmt.Fprint(w, i)
			http.NewResponseController(w).Flush()
		}
	}, func(o *Options) { o.HeaderTime, o.BodyTime, o.IdleTime = bound, bound, bound })
	for _, raw := range []string{plainRequest, otherRequest, "PUT /api HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}"} {
		nc, br := dialRaw(t, s.addr)
		io.WriteString(nc, raw)
		if _, body := readAnswer(t, br); body != "01234" {
			t.Errorf("%.10s: got %q", raw, body)
		}
	}
}

// TestTooMany checks that a new client gets an error when all slots have a request in progress, and gets a slot as soon
// as a request is done.
func TestTooMany(t *testing.T) {
	began, finish := make(chan bool), make(chan bool)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		io.ReadAll(r.Body)
		if r.Header.Get("X-Wait") != "" {
			began <- true
			<-finish
		}
	})
	defer close(finish)
	for i := range s.plain.MaxConns {
		nc, _ := dialRaw(t, s.addr)
		io.WriteString(nc, strings.Replace([]string{plainRequest, otherRequest}[i%2], "\r\n", "\r\nX-Wait: 1\r\n", 1))
		<-began
	}
	if got := exchangeRaw(t, s.addr, "", 1); !strings.HasPrefix(got[0], "503") {
		t.Errorf("the connection over the limit got %q", got)
	}
	finish <- true
	until(t, "a place is free", func() bool { return strings.HasPrefix(exchangeRaw(t, s.addr, plainRequest, 1)[0], "200") })
}

// TestClosingOrder checks which of the connections with an earlier request is closed first.
func TestClosingOrder(t *testing.T) {
	type one struct {
		phase     connPhase
		since     time.Duration // time since the start of the phase
		got       int64
		unreadFor time.Duration
	}
	calling := one{phase: working, since: time.Hour}
	for _, tt := range []struct {
		name string
		all  []one
		goes int // index of the closed connection; -1 means none
	}{
		{"all are being worked on", []one{calling, calling}, -1},
		{"the one that has been idle for longest", []one{{since: time.Second}, calling, {since: time.Minute}, {}}, 2},
		{"a slow head before one that is idle", []one{{since: time.Minute}, {phase: inHead, since: slowAfter}}, 1},
		{"a slow body before one that is idle", []one{{since: time.Minute}, {phase: inBody, since: slowAfter, got: fastBodyRate / 2}}, 1},
		{"the slower one", []one{{phase: inBody, since: 2 * slowAfter}, {phase: inHead, since: 3 * slowAfter}}, 1},
		{"one that does not read its answer", []one{{since: time.Minute}, {phase: working, unreadFor: stuckAfter}}, 1},
		{"not one that has just begun", []one{{phase: inHead, since: slowAfter / 2}, {phase: inBody}, {since: time.Millisecond}}, 2},
		{"not one whose body comes well", []one{{phase: inBody, since: 4 * time.Second, got: 4 * fastBodyRate}, {}}, 1},
		{"not one that reads its answer", []one{{phase: working, unreadFor: stuckAfter / 2}, {}}, 1},
	} {
		l := New(listen(t), Options{MaxConns: 2})
		defer l.Close()
		now := time.Now()
		l.made = now.Add(-time.Hour)
		var ends []net.Conn
		for _, o := range tt.all {
			inner, outer := net.Pipe()
			p := &connState{in: l.connRegistry, nc: inner, raw: inner, phase: o.phase, since: now.Add(-o.since)}
			p.got.Store(o.got)
			if o.unreadFor > 0 {
				p.markWriteStarted(now.Add(-o.unreadFor))
			}
			l.conns[p] = false
			ends = append(ends, outer)
		}
		l.mu.Lock()
		found := l.evictEstablishedConns(now)
		l.mu.Unlock()
		if found != (tt.goes >= 0) {
			t.Errorf("%s: closed a connection: %v", tt.name, found)
		}
		for i, end := range ends {
			end.SetReadDeadline(past)
			if _, err := end.Read(make([]byte, 1)); (err == io.EOF) != (i == tt.goes) {
				t.Errorf("%s: connection %d: %v", tt.name, i, err)
			}
		}
	}
}

// TestRoom checks which connection is closed for a new one, and when the new connection has to wait.
func TestRoom(t *testing.T) {
	const young, old = graceTime / 2, graceTime
	for _, tt := range []struct {
		name             string
		newcomers        int
		age              time.Duration
		known            int // idle connections with an earlier request
		working          int
		ok, waits        bool
		dropped, knownGo bool
	}{
		{name: "places are free", newcomers: 3, age: old, known: 2, ok: true},
		{name: "the share is used", newcomers: 4, age: old, known: 2, ok: true, dropped: true},
		{name: "the share is used by young ones, and places are free", newcomers: 5, age: young, known: 2, ok: true},
		{name: "all is full of young ones", newcomers: 8, age: young, waits: true},
		{name: "all is full of old ones", newcomers: 8, age: old, ok: true, dropped: true},
		{name: "an idle one goes", newcomers: 2, age: old, known: 3, working: 3, ok: true, knownGo: true},
		{name: "nobody is idle", newcomers: 2, age: old, working: 6, ok: true, dropped: true},
		{name: "nobody is idle, and the newcomers are young", newcomers: 2, age: young, working: 6, waits: true},
		{name: "all are being worked on", working: 8},
	} {
		l := New(nil, Options{MaxConns: 8})
		now := time.Now()
		add := func(n int, phase connPhase, came time.Time) {
			for range n {
				inner, _ := net.Pipe()
				one := &connState{in: l.connRegistry, nc: inner, raw: inner, phase: phase, since: now.Add(-time.Hour), came: came}
				if l.conns[one] = false; !came.IsZero() {
					one.at = l.newcomers.PushBack(one)
				}
			}
		}
		add(tt.newcomers, waiting, now.Add(-tt.age))
		add(tt.known, waiting, time.Time{})
		add(tt.working, working, time.Time{})
		l.mu.Lock()
		ok, again := l.reserveSlot(now)
		l.mu.Unlock()
		if ok != tt.ok || !ok && again > 0 != tt.waits || again > graceTime {
			t.Errorf("%s: got %v, %v", tt.name, ok, again)
		}
		newcomers := l.newcomers.Len()
		if gone := newcomers < tt.newcomers; gone != tt.dropped {
			t.Errorf("%s: %d connections without a request are left", tt.name, newcomers)
		}
		if gone := len(l.conns)-newcomers < tt.known+tt.working; gone != tt.knownGo {
			t.Errorf("%s: %d connections are left", tt.name, len(l.conns))
		}
	}
}

// TestFastNewConnections checks that slow connections do not displace a first request that arrives at a good rate.
func TestFastNewConnections(t *testing.T) {
	s := serveOn(t, listen(t), reads, patient)
	const length = 1 << 19
	var brisk [3]net.Conn
	var readers [3]*bufio.Reader
	for i := range brisk {
		brisk[i], readers[i] = dialRaw(t, s.addr)
		fmt.Fprintf(brisk[i], "%sContent-Length: %d\r\n\r\n%s", plainHead, length, strings.Repeat("a", length-1))
	}
	for {
		s.plain.mu.Lock()
		here := 0
		for p := range s.plain.conns {
			if p.got.Load() > length/2 {
				here++
			}
		}
		s.plain.mu.Unlock()
		if here == len(brisk) {
			break
		}
	}
	for range 3 * s.plain.MaxConns {
		nc, _ := dialRaw(t, s.addr)
		io.WriteString(nc, plainHead)
	}
	if got := exchangeRaw(t, s.addr, plainRequest, 1); !strings.HasPrefix(got[0], "200") {
		t.Errorf("a new connection got %q", got)
	}
	for i := range brisk {
		io.WriteString(brisk[i], "a")
		if resp, _ := readAnswer(t, readers[i]); resp.StatusCode != http.StatusOK {
			t.Errorf("status %d", resp.StatusCode)
		}
	}
}

// TestNoFileDescriptors checks that a process without free file descriptors closes a connection to get one.
func TestNoFileDescriptors(t *testing.T) {
	inner := troubled{listen(t), make(chan error, 1)}
	s := serveOn(t, inner, reads, patient)
	nc, br := dialRaw(t, s.addr)
	io.WriteString(nc, plainHead)
	again, _ := dialRaw(t, s.addr) // a second connection without a complete request
	io.WriteString(again, plainHead)
	s.hear(t, 2) // otherwise the error might occur before they are registered
	inner.errs <- &net.OpError{Op: "accept", Err: syscall.EMFILE}
	if got := exchangeRaw(t, s.addr, plainRequest, 1); !strings.HasPrefix(got[0], "200") {
		t.Errorf("got %q", got)
	}
	exchangeRaw(t, s.addr, plainRequest, 1) // by now the error has occurred
	if _, err := br.ReadByte(); err != io.EOF && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the slow connection: %v", err)
	}
}

// TestNoRequestIsLost checks that, with far too few slots, every executed request gets a response, and that no request
// is executed whose connection ended before.
func TestNoRequestIsLost(t *testing.T) {
	if testing.Short() {
		t.Skip("many connections")
	}
	var done sync.Map
	s := serveOn(t, listen(t), func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err == nil && r.Header.Get("X-Id") != "" {
			done.Store(r.Header.Get("X-Id"), true)
		}
	}, patient, func(o *Options) { o.MaxConns = 24 })
	stop := make(chan struct{})
	var slow, all sync.WaitGroup
	for i := range 8 {
		slow.Go(func() {
			raws := []string{"", plainHead, "GET / HTTP/1.1\r\n", plainHead + "Content-Length: 9\r\n\r\n{", plainRequest + plainHead, otherRequest + "GET"}
			var open []net.Conn
			for j := i; ; j++ {
				select {
				case <-stop:
					for _, nc := range open {
						nc.Close()
					}
					return
				default:
				}
				nc, err := net.Dial("tcp", s.addr)
				if err != nil {
					t.Error(err)
					return
				}
				io.WriteString(nc, raws[j%len(raws)])
				if open = append(open, nc); len(open) == 6 {
					open[0].Close()
					open = open[1:]
				}
			}
		})
	}
	var answered, cut atomic.Int64
	for i := range 8 {
		all.Go(func() {
			var nc net.Conn
			var br *bufio.Reader
			for j := range 300 {
				if nc == nil {
					nc, br = dialRaw(t, s.addr)
				}
				id := fmt.Sprintf("%d-%d", i, j)
				io.WriteString(nc, strings.Replace([]string{plainRequest, otherRequest}[(i+j/50)%2], "\r\n", "\r\nX-Id: "+id+"\r\n", 1))
				resp, err := http.ReadResponse(br, nil)
				_, carriedOut := done.Load(id)
				switch {
				case err != nil && carriedOut:
					t.Errorf("%s was executed but got no response: %v", id, err)
				case err != nil:
					cut.Add(1)
				case resp.StatusCode == http.StatusOK && carriedOut:
					answered.Add(1)
				default:
					t.Errorf("%s: status %d, executed %v", id, resp.StatusCode, carriedOut)
				}
				if err != nil {
					nc.Close()
					nc = nil
				} else {
					io.Copy(io.Discard, resp.Body)
				}
			}
			nc.Close()
		})
	}
	all.Wait()
	close(stop)
	slow.Wait()
	t.Logf("%d answered, %d connections were closed before their request", answered.Load(), cut.Load())
}

// BenchmarkSlow measures the whole lifetime of a connection that is rejected or sends little, including its client.
func BenchmarkSlow(b *testing.B) {
	s := serveOn(b, listen(b), reads, patient, func(o *Options) { o.MaxConns = 200 })
	for _, name := range []string{"half a head", "a refused body", "a refused body at net/http"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			raw, answer := []byte(slowly[name]), make([]byte, 1024)
			for b.Loop() {
				nc, err := net.Dial("tcp", s.addr)
				if err != nil {
					b.Fatal(err)
				}
				nc.Write(raw)
				if name != "half a head" {
					nc.Read(answer)
				}
				nc.Close()
			}
		})
	}
}
