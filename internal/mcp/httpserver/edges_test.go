package httpserver

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// dialRaw returns a connection and a reader for the responses on it.
func dialRaw(t testing.TB, addr string) (net.Conn, *bufio.Reader) {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	nc.SetDeadline(time.Now().Add(patience))
	return nc, bufio.NewReader(nc)
}

func readAnswer(t testing.TB, br *bufio.Reader) (*http.Response, string) {
	t.Helper()
	resp, err := http.ReadResponse(br, nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

// noting is a listener that records the deadlines of its connections.
type noting struct {
	net.Listener
	mu          sync.Mutex
	read, write time.Time
}

type noted struct {
	net.Conn
	at *noting
}

func (n *noting) Accept() (net.Conn, error) {
	nc, err := n.Listener.Accept()
	return noted{nc, n}, err
}

func (n *noting) note(of *time.Time, by time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	*of = by
}

func (c noted) SetDeadline(by time.Time) error {
	c.at.note(&c.at.read, by)
	c.at.note(&c.at.write, by)
	return c.Conn.SetDeadline(by)
}

func (c noted) SetReadDeadline(by time.Time) error {
	c.at.note(&c.at.read, by)
	return c.Conn.SetReadDeadline(by)
}

func (c noted) SetWriteDeadline(by time.Time) error {
	c.at.note(&c.at.write, by)
	return c.Conn.SetWriteDeadline(by)
}

// TestNothingLeftBehind checks that the deadlines of a response of this package do not affect later responses of
// net/http on the same connection.
func TestNothingLeftBehind(t *testing.T) {
	inner := &noting{Listener: listen(t)}
	s := serveOn(t, inner, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			inner.mu.Lock()
			defer inner.mu.Unlock()
			fmt.Fprint(w, inner.write.IsZero())
			return
		}
		rc := http.NewResponseController(w)
		w.Header().Set("Content-Length", "2")
		rc.SetWriteDeadline(time.Now().Add(time.Minute))
		io.WriteString(w, "ok")
		if err := rc.Flush(); err != nil {
			t.Error(err)
		}
		rc.SetWriteDeadline(time.Time{})
	})
	nc, br := dialRaw(t, s.addr)
	io.WriteString(nc, plainHead+"Content-Length: 0\r\n\r\n")
	readAnswer(t, br)
	io.WriteString(nc, "GET /mcp HTTP/1.1\r\nHost: a\r\n\r\n")
	if _, body := readAnswer(t, br); body != "true" {
		t.Error("net/http got a connection with a write deadline")
	}
}

// TestRefusalOfAnUnreadBody checks that a response that closes the connection reaches a client that has sent, or is
// still sending, a body that the server does not read.
func TestRefusalOfAnUnreadBody(t *testing.T) {
	s := serveOn(t, listen(t), func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		http.Error(w, "no", http.StatusForbidden)
	}, func(o *Options) { o.HeaderTime = time.Minute })
	nc, br := dialRaw(t, s.addr)
	const sent, more = 60_000, 40_000
	fmt.Fprintf(nc, "%sContent-Length: %d\r\n\r\n%s", plainHead, sent+more, strings.Repeat("a", sent))
	if resp, body := readAnswer(t, br); resp.StatusCode != http.StatusForbidden || body != "no\n" || !resp.Close {
		t.Errorf("got status %d, body %q, close %v", resp.StatusCode, body, resp.Close)
	}
	if _, err := io.WriteString(nc, strings.Repeat("a", more)); err != nil {
		t.Errorf("writing the rest of the body: %v", err)
	}
	if _, err := br.ReadByte(); err != io.EOF {
		t.Errorf("reading after the response: got %v, want EOF", err)
	}
}

// TestLateRead checks that a handler that keeps the body after its request cannot read from the next request.
func TestLateRead(t *testing.T) {
	var kept io.Reader
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Keep") != "" {
			kept = r.Body
			return
		}
		n, err := kept.Read(make([]byte, 4))
		body, _ := io.ReadAll(r.Body)
		fmt.Fprint(w, n, err, string(body))
	})
	nc, br := dialRaw(t, s.addr)
	io.WriteString(nc, plainHead+"X-Keep: 1\r\nContent-Length: 5\r\n\r\nfirst")
	readAnswer(t, br)
	io.WriteString(nc, plainHead+"Content-Length: 6\r\n\r\nsecond")
	if _, body := readAnswer(t, br); body != fmt.Sprint(0, http.ErrBodyReadAfterClose, "second") {
		t.Errorf("got %q", body)
	}
}

// TestLateWrite checks that bytes that a handler writes after its end do not reach another response.
func TestLateWrite(t *testing.T) {
	var kept http.ResponseWriter
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if kept == nil {
			kept = w
			io.WriteString(w, "first")
			return
		}
		kept.Header().Set("X-Late", "1")
		kept.WriteHeader(http.StatusTeapot)
		n, err := kept.Write([]byte("late"))
		fmt.Fprint(w, n, err, http.NewResponseController(kept).Flush())
	})
	nc, br := dialRaw(t, s.addr)
	for _, want := range []string{"first", fmt.Sprint(0, http.ErrHandlerTimeout, http.ErrHandlerTimeout)} {
		io.WriteString(nc, plainHead+"Content-Length: 0\r\n\r\n")
		if resp, body := readAnswer(t, br); body != want || resp.StatusCode != http.StatusOK || resp.Header.Get("X-Late") != "" {
			t.Errorf("got %d %q %v, want %q", resp.StatusCode, body, resp.Header, want)
		}
	}
}

// TestClosedBody checks that a body that its handler has closed is not read further.
func TestClosedBody(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		r.Body.Close()
		_, err := io.ReadAll(r.Body)
		fmt.Fprint(w, errors.Is(err, http.ErrBodyReadAfterClose))
	})
	nc, br := dialRaw(t, s.addr)
	for range 2 {
		io.WriteString(nc, plainHead+"Content-Length: 5\r\n\r\nfirst")
		if _, body := readAnswer(t, br); body != "true" {
			t.Errorf("got %q", body)
		}
	}
}

// TestBodyLongerThanAnnounced checks that a handler that writes more than it announced gets an error, and that the
// excess is not sent as part of the body.
func TestBodyLongerThanAnnounced(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "2")
		for i, piece := range []string{"a", "xyz", "b"} {
			if _, err := io.WriteString(w, piece); errors.Is(err, http.ErrContentLength) != (i > 0) {
				t.Errorf("piece %d: %v", i, err)
			}
		}
	})
	if got := exchangeRaw(t, s.addr, plainHead+"Content-Length: 0\r\n\r\n", 1); got[0] != "200  unexpected EOF 2 a" {
		t.Errorf("got %q", got)
	}
}

// TestDeadlineIsKeptIfClose checks that a deadline that is a little early is not set again, unless the difference is
// large compared with the remaining time.
func TestDeadlineIsKeptIfClose(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		set, by time.Duration // from now; 0 means none
		want    bool
	}{
		{0, 0, true}, {0, time.Minute, false}, {time.Minute, 0, false}, {time.Minute, time.Minute, true},
		{time.Minute, time.Minute + slack, true}, {time.Minute, time.Minute + slack + 1, false}, {time.Minute + 1, time.Minute, false},
		{-slack / 4, slack / 2, false}, {slack / 4, slack, false}, {-time.Hour, time.Minute, false},
	} {
		at := func(d time.Duration) time.Time {
			if d == 0 {
				return time.Time{}
			}
			return now.Add(d)
		}
		if got := isDeadlineCloseEnough(at(c.set), at(c.by), now); got != c.want {
			t.Errorf("deadline %v, requested %v: got %v", c.set, c.by, got)
		}
	}
}

// TestGoexit checks that a handler that ends its goroutine closes its connection.
func TestGoexit(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { runtime.Goexit() })
	nc, br := dialRaw(t, s.addr)
	io.WriteString(nc, plainHead+"Content-Length: 0\r\n\r\n")
	if _, err := br.ReadByte(); err != io.EOF {
		t.Errorf("got %v", err)
	}
}

// TestPanicOfText checks that a panic with a value that is not an error closes the connection too.
func TestPanicOfText(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { panic("text") })
	nc, br := dialRaw(t, s.addr)
	io.WriteString(nc, plainHead+"Content-Length: 0\r\n\r\n")
	if _, err := br.ReadByte(); err != io.EOF {
		t.Errorf("got %v", err)
	}
}

// TestCutOffUnread checks that a stop that takes too long ends a handler that has not read its body. The server cannot
// see whether the client of such a handler is still connected.
func TestCutOffUnread(t *testing.T) {
	began := make(chan bool)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		began <- true
		select {
		case <-r.Context().Done():
		case <-time.After(patience):
			t.Error("the handler's context did not end")
		}
	})
	nc, _ := dialRaw(t, s.addr)
	io.WriteString(nc, plainHead+"Content-Length: 5\r\n\r\n")
	<-began
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.plain.Shutdown(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestCutOffIgnored checks that a handler that never ends does not delay a stop whose time is over.
func TestCutOffIgnored(t *testing.T) {
	began, release := make(chan bool), make(chan bool)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		began <- true
		<-release
	})
	nc, _ := dialRaw(t, s.addr)
	io.WriteString(nc, plainHead+"Content-Length: 0\r\n\r\n")
	<-began
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	stopped := make(chan error, 1)
	go func() { stopped <- s.plain.Shutdown(ctx) }()
	select {
	case err := <-stopped:
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Error("Shutdown does not return")
	}
	close(release)
}

// TestHalfClose checks that a client that closes its sending side gets its response.
func TestHalfClose(t *testing.T) {
	s := serve(t, tell)
	for _, length := range []int{0, 5, maxLength} {
		nc, br := dialRaw(t, s.addr)
		fmt.Fprintf(nc, "%sContent-Length: %d\r\n\r\n%s", plainHead, length, strings.Repeat("a", length))
		nc.(*net.TCPConn).CloseWrite()
		if resp, _ := readAnswer(t, br); resp.StatusCode != http.StatusOK {
			t.Errorf("%d bytes: status %d", length, resp.StatusCode)
		}
		if _, err := br.ReadByte(); err != io.EOF {
			t.Errorf("%d bytes: then %v", length, err)
		}
	}
}

// TestUnreadAnswer checks that the request of a client that does not read ends at the handler's deadline.
func TestUnreadAnswer(t *testing.T) {
	ended := make(chan error, 1)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		rc := http.NewResponseController(w)
		piece := make([]byte, maxPending)
		for {
			rc.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
			if _, err := w.Write(piece); err != nil {
				ended <- errors.Join(err, r.Context().Err())
				return
			}
		}
	})
	nc, _ := dialRaw(t, s.addr)
	io.WriteString(nc, plainHead+"Content-Length: 0\r\n\r\n")
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "timeout") {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Error("the handler still writes")
	}
}

// act executes a script in a handler. W sets a status, w writes that many bytes, f flushes, l announces a length, h
// sets a header value, c closes the connection, and a aborts the handler.
func act(w http.ResponseWriter, script string) {
	w.Header().Set("Content-Type", "text/plain")
	for step := range strings.FieldsSeq(script) {
		var n int
		fmt.Sscan(step[1:], &n)
		switch step[0] {
		case 'W':
			w.WriteHeader(n)
		case 'w':
			w.Write([]byte(strings.Repeat("x", min(n, 100_000))))
		case 'f':
			w.(http.Flusher).Flush()
		case 'l':
			w.Header().Set("Content-Length", step[1:])
		case 'h':
			w.Header().Set("X-Value", step[1:])
		case 'c':
			w.Header().Set("Connection", "close")
		case 'a':
			w.(http.Flusher).Flush() // the servers differ in whether they send unflushed bytes here
			panic(http.ErrAbortHandler)
		}
	}
}

// scripts matches the scripts for which both servers must behave the same. Interim responses, and a 304 for a POST, are
// excluded. A length with a plus sign, which net/http would announce, is also rejected.
var scripts = regexp.MustCompile(`^( *(W(2\d\d|30[0-3]|[4-9]\d\d)|w\d{1,6}|l[-x]?\d{0,19}|h\d*|[fca])( |$))*$`)

// FuzzAnswers checks that, for any handler, clients get the same response as from net/http.
func FuzzAnswers(f *testing.F) {
	for _, script := range []string{
		"", "w5", "W202 l0", "W204", "W204 w5", "W404 w5", "l5 w5", "l5 w3 w2", "l5 w3", "l3 w5", "l5 w3 f w9 w2", "lx w5",
		"l-1 w5", "l05 w5", "w5 f w5", "w0", "w0 f w0 w5", "f", "f w5", "f f", "w3000 w3000", "w40000", "w3000 f w40000 w1", "w100000 w100000", "c", "c w5", "c w5 f w5",
		"w5 c", "w5 l9", "w5 l9 f w4", "W200 l9 f w4", "l5 W200 l9 w5", "W200 h1 w5", "h1 w5 h2 f w5", "w5 h1 w40000", "W200 W404 w5", "w5 W404",
		"W299 w5", "W599", "a", "w5 a", "w5 f a", "l5 w3 f a", "l50000 w40000 w10000", "l50000 f w40000 w10000", "l0 w5", "W205", "l9999999999999999999 w5",
	} {
		f.Add(script)
	}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		act(w, r.Header.Get("X-Script"))
	})
	s := serve(f, handler)
	reference := &http.Server{Handler: handler, ErrorLog: discard}
	l := listen(f)
	go reference.Serve(l)
	f.Cleanup(func() { reference.Close() })
	ask := func(t *testing.T, addr, script string) string {
		nc, br := dialRaw(t, addr)
		defer nc.Close()
		fmt.Fprintf(nc, "%sX-Script: %s\r\nContent-Length: 1\r\n\r\nz", plainHead, script)
		resp, err := http.ReadResponse(br, nil)
		if err != nil {
			return "none"
		}
		if resp.ContentLength >= 0 && len(resp.TransferEncoding) > 0 {
			t.Errorf("the response has two framings: %v", resp)
		}
		body, err := io.ReadAll(resp.Body)
		seen := fmt.Sprint(resp.StatusCode, resp.Header["X-Value"], resp.Header["Content-Type"], resp.Close, len(body), err)
		if err != nil || resp.Close {
			return seen
		}
		fmt.Fprintf(nc, "%sContent-Length: 0\r\n\r\n", plainHead)
		resp, err = http.ReadResponse(br, nil)
		return fmt.Sprint(seen, " again: ", err == nil && resp.StatusCode == http.StatusOK)
	}
	f.Fuzz(func(t *testing.T, script string) {
		if !scripts.MatchString(script) {
			t.Skip()
		}
		if got, want := ask(t, s.addr, script), ask(t, l.Addr().String(), script); got != want {
			t.Errorf("%q:\ngot  %s\nwant %s", script, got, want)
		}
	})
}

// TestStopUnderLoad checks that a stop with all kinds of active clients leaves no connection open on either side.
func TestStopUnderLoad(t *testing.T) {
	if testing.Short() {
		t.Skip("many connections")
	}
	inner := listen(t)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.NewResponseController(w).SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		tell(w, r)
	})
	l := New(inner, Options{
		Handler: handler, Plain: func(path string) bool { return path == "/mcp" }, Base: func(net.Listener) context.Context { return context.Background() },
		HeaderTime: 20 * time.Millisecond, BodyTime: 20 * time.Millisecond, IdleTime: time.Second, MaxConns: 12, Logger: slog.New(slog.DiscardHandler),
	})
	server := &http.Server{Handler: handler, ErrorLog: discard}
	l.ApplyLimits(server)
	var all sync.WaitGroup
	all.Go(func() { server.Serve(l) })
	const plain, get = plainHead + "Content-Length: 1\r\n\r\nz", "GET /mcp HTTP/1.1\r\nHost: a\r\n\r\n"
	var answers atomic.Int64
	enough := make(chan struct{})
	for i := range 16 {
		all.Go(func() {
			for j := i; ; j++ {
				nc, err := net.Dial("tcp", inner.Addr().String())
				if err != nil {
					return // the server has stopped
				}
				io.WriteString(nc, []string{plain, get, plain + get, plainHead, plain + plainHead, "", plain[:len(plain)-1], plain + plain + get + plain}[j%8])
				nc.SetReadDeadline(time.Now().Add(patience))
				br := bufio.NewReader(nc)
				for range j % 4 {
					resp, err := http.ReadResponse(br, nil)
					if err != nil {
						break
					}
					io.Copy(io.Discard, resp.Body)
					if answers.Add(1) == 200 {
						close(enough)
					}
				}
				nc.Close()
			}
		})
	}
	<-enough
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	all.Go(func() {
		if err := server.Shutdown(ctx); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Errorf("net/http: %v", err)
		}
	})
	if err := l.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	all.Wait()
	until(t, "all connections are forgotten", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.conns) == 0
	})
}

// troubled is a listener that first returns the errors in its channel.
type troubled struct {
	net.Listener
	errs chan error
}

func (l troubled) Accept() (net.Conn, error) {
	select {
	case err := <-l.errs:
		return nil, err
	default:
		return l.Listener.Accept()
	}
}

// TestAcceptErrors checks that a temporary error, such as too many open files, is retried as in net/http, and that any
// other error ends the server.
func TestAcceptErrors(t *testing.T) {
	inner := troubled{listen(t), make(chan error, 2)}
	for range cap(inner.errs) {
		inner.errs <- &net.OpError{Op: "accept", Err: syscall.EMFILE}
	}
	s := serveOn(t, inner, tell)
	if got := exchangeRaw(t, s.addr, plainHead+"Content-Length: 0\r\n\r\n", 1); !strings.HasPrefix(got[0], "200") {
		t.Errorf("got %q", got)
	}

	inner = troubled{listen(t), make(chan error, 1)}
	inner.errs <- io.ErrClosedPipe
	l := New(inner, Options{Base: func(net.Listener) context.Context { return context.Background() }, Logger: slog.New(slog.DiscardHandler)})
	if err := http.Serve(l, nil); err != io.ErrClosedPipe {
		t.Errorf("Serve: %v", err)
	}
	if _, err := net.Dial("tcp", inner.Addr().String()); err == nil {
		t.Error("the server still listens")
	}
	if err := l.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
}

// TestCloseWrite checks that net/http can close only the sending side of a connection that was handed over.
func TestCloseWrite(t *testing.T) {
	l := listen(t)
	defer l.Close()
	nc, br := dialRaw(t, l.Addr().String())
	inner, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	r := &replayConn{Conn: inner, state: &connState{in: New(l, Options{}).connRegistry}}
	defer r.Close()
	if err := r.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if _, err := br.ReadByte(); err != io.EOF {
		t.Errorf("the client reads %v", err)
	}
	io.WriteString(nc, "z")
	if n, err := r.Read(make([]byte, 1)); n != 1 || err != nil {
		t.Errorf("the server reads %d, %v", n, err)
	}
}

// TestHandOverTooLate checks that a connection that net/http no longer accepts is closed and removed from the registry.
func TestHandOverTooLate(t *testing.T) {
	l := New(listen(t), Options{})
	l.Close()
	client, server := net.Pipe()
	p := &connState{in: l.connRegistry, nc: server}
	l.conns[p] = false
	l.passToNetHTTP(&replayConn{Conn: server, state: p})
	if _, err := client.Read(make([]byte, 1)); err != io.EOF || len(l.conns) != 0 {
		t.Errorf("got %v, %d registered connections", err, len(l.conns))
	}
}
