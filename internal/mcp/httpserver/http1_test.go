package httpserver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var discard = slog.NewLogLogger(slog.DiscardHandler, 0)

// patience limits every wait. A wait that takes longer is a failure.
const patience = time.Minute

// served is a server as in the daemon: this package serves plain requests, and net/http serves all others.
type served struct {
	addr  string
	plain *ServingListener
	other atomic.Int64 // number of connections that were handed to net/http
}

func serve(t testing.TB, h http.HandlerFunc) *served {
	t.Helper()
	return serveOn(t, listen(t), h)
}

func listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// until waits until the condition is true.
func until(t testing.TB, what string, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !so(); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("not after a minute: %s", what)
		}
	}
}

// hear waits until n connections have not sent their first request yet.
func (s *served) hear(t testing.TB, n int) {
	t.Helper()
	until(t, "newcomers are here", func() bool {
		s.plain.mu.Lock()
		defer s.plain.mu.Unlock()
		return s.plain.newcomers.Len() >= n
	})
}

func serveOn(t testing.TB, inner net.Listener, h http.HandlerFunc, change ...func(*Options)) *served {
	t.Helper()
	s := &served{addr: inner.Addr().String()}
	opt := Options{
		Handler: h, Plain: func(path string) bool { return strings.HasPrefix(path, "/mcp") },
		Base:       func(net.Listener) context.Context { return context.Background() },
		HeaderTime: time.Second, BodyTime: 10 * time.Second, IdleTime: time.Minute, MaxConns: 40, Logger: slog.New(slog.DiscardHandler),
	}
	for _, f := range change {
		f(&opt)
	}
	s.plain = New(inner, opt)
	server := &http.Server{Handler: h, ErrorLog: discard,
		ConnContext: func(ctx context.Context, _ net.Conn) context.Context { s.other.Add(1); return ctx }}
	s.plain.ApplyLimits(server)
	done := make(chan error, 1)
	go func() { done <- server.Serve(s.plain) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		server.Shutdown(ctx)
		if err := s.plain.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		if err := <-done; !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			t.Errorf("Serve: %v", err)
		}
	})
	return s
}

// told contains the parts of a request that a handler sees.
type told struct {
	Method, Path, Query, URI, Proto, Host, Body string
	Length                                      int64
	Header                                      http.Header
	Transfer                                    []string
	Err                                         string
}

func tell(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	seen := told{r.Method, r.URL.Path, r.URL.RawQuery, r.RequestURI, r.Proto, r.Host, string(body), r.ContentLength, r.Header, r.TransferEncoding, ""}
	if err != nil {
		seen.Err = err.Error()
	}
	out, _ := json.Marshal(seen)
	w.Header().Set("Content-Type", "application/json")
	w.Write(out)
}

// exchangeRaw writes bytes and reads the responses up to the end or the first error. It returns each response as its
// status and body.
func exchangeRaw(t testing.TB, addr string, raw string, answers int) []string {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(nc, raw); err != nil {
		return []string{"cut"}
	}
	nc.(*net.TCPConn).CloseWrite()
	var got []string
	br := bufio.NewReader(nc)
	for range answers {
		resp, err := http.ReadResponse(br, nil)
		if err != nil {
			got = append(got, "none")
			break
		}
		body, err := io.ReadAll(resp.Body)
		got = append(got, fmt.Sprintf("%d %s %v %d %s", resp.StatusCode, resp.Header.Get("Content-Type"), err, resp.ContentLength, body))
		if resp.Close {
			break
		}
	}
	return got
}

const plainHead = "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"

// requests contains heads and bodies of all kinds: plain, unusual and invalid. plain means that net/http must not serve
// the request.
var requests = []struct {
	name, raw string
	plain     bool
}{
	{"plain", plainHead + "Content-Length: 2\r\n\r\n{}", true},
	{"lower case names", "POST /mcp/servers/a HTTP/1.1\r\nhost: localhost:1\r\naccept: */*\r\nmcp-session-id: x\r\ncontent-length: 3\r\n\r\nabc", true},
	{"no body", plainHead + "Content-Length: 0\r\n\r\n", true},
	{"no space after the colon", "POST /mcp HTTP/1.1\r\nHost:a\r\nX:\t y \t\r\nContent-Length:1\r\n\r\nz", true},
	{"two lines of one name", plainHead + "Accept: a\r\nAccept: b\r\naccept: c\r\nContent-Length: 1\r\n\r\nz", true},
	{"empty value", plainHead + "X-Empty:\r\nContent-Length: 1\r\n\r\nz", true},
	{"keep-alive", plainHead + "Connection: keep-alive\r\nContent-Length: 1\r\n\r\nz", true},
	{"Keep-Alive", plainHead + "Connection: Keep-Alive\r\nContent-Length: 1\r\n\r\nz", true},
	{"two requests", plainHead + "Content-Length: 1\r\n\r\na" + plainHead + "X-Two: 2\r\nContent-Length: 1\r\n\r\nb", true},
	{"zeros before the length", plainHead + "Content-Length: 0002\r\n\r\n{}", true},

	{"another method", "GET /mcp HTTP/1.1\r\nHost: a\r\n\r\n", false},
	{"another path", "POST /api HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nz", false},
	{"query", "POST /mcp?a=b HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nz", false},
	{"escaped path", "POST /mcp/%61 HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nz", false},
	{"absolute form", "POST http://b/mcp HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nz", false},
	{"two slashes", "POST //mcp HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nz", false},
	{"HTTP/1.0", "POST /mcp HTTP/1.0\r\nHost: a\r\nContent-Length: 1\r\n\r\nz", false},
	{"HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", false},
	{"no host", "POST /mcp HTTP/1.1\r\nContent-Length: 1\r\n\r\nz", false},
	{"empty host", "POST /mcp HTTP/1.1\r\nHost:\r\nContent-Length: 1\r\n\r\nz", false},
	{"two hosts", "POST /mcp HTTP/1.1\r\nHost: a\r\nHost: a\r\nContent-Length: 1\r\n\r\nz", false},
	{"odd host", "POST /mcp HTTP/1.1\r\nHost: a b\r\nContent-Length: 1\r\n\r\nz", false},
	{"two lengths", plainHead + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nzz", false},
	{"the same length twice", plainHead + "Content-Length: 1\r\nContent-Length: 1\r\n\r\nz", false},
	{"list of lengths", plainHead + "Content-Length: 1, 1\r\n\r\nz", false},
	{"signed length", plainHead + "Content-Length: +1\r\n\r\nz", false},
	{"no length", plainHead + "\r\n", false},
	{"chunked", plainHead + "Transfer-Encoding: chunked\r\n\r\n1\r\nz\r\n0\r\n\r\n", false},
	{"chunked and a length", plainHead + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nz\r\n0\r\n\r\n", false},
	{"length and chunked, name with a space", plainHead + "Content-Length: 1\r\nTransfer-Encoding : chunked\r\n\r\nz", false},
	{"close", plainHead + "Connection: close\r\nContent-Length: 1\r\n\r\nz", false},
	{"hop by hop", plainHead + "Connection: keep-alive, x\r\nContent-Length: 1\r\n\r\nz", false},
	{"upgrade", plainHead + "Upgrade: h2c\r\nContent-Length: 1\r\n\r\nz", false},
	{"folded line", plainHead + "X: a\r\n b\r\nContent-Length: 1\r\n\r\nz", false},
	{"space before the first name", "POST /mcp HTTP/1.1\r\n Host: a\r\nContent-Length: 1\r\n\r\nz", false},
	{"line without colon", plainHead + "oops\r\nContent-Length: 1\r\n\r\nz", false},
	{"empty name", plainHead + ": v\r\nContent-Length: 1\r\n\r\nz", false},
	{"control in a value", plainHead + "X: a\x01b\r\nContent-Length: 1\r\n\r\nz", false},
	{"NUL in a value", plainHead + "X: a\x00b\r\nContent-Length: 1\r\n\r\nz", false},
	{"return in a value", plainHead + "X: a\rb\r\nContent-Length: 1\r\n\r\nz", false},
	{"newline alone", "POST /mcp HTTP/1.1\nHost: a\nContent-Length: 1\n\nz", false},
	{"newline alone within", "POST /mcp HTTP/1.1\r\nHost: a\nX: y\r\nContent-Length: 1\r\n\r\nz", false},
	{"bytes beyond ASCII", plainHead + "X: \xc3\xa9\r\nContent-Length: 1\r\n\r\nz", false},
	{"name beyond ASCII", plainHead + "\xc3\xa9: 1\r\nContent-Length: 1\r\n\r\nz", false},
	{"long head", plainHead + "X: " + strings.Repeat("a", 2*maxHeadSize) + "\r\nContent-Length: 1\r\n\r\nz", false},
	{"very long head", plainHead + "X: " + strings.Repeat("a", 100<<10) + "\r\nContent-Length: 1\r\n\r\nz", false},
	{"many lines", plainHead + strings.Repeat("X: y\r\n", maxHeaders+1) + "Content-Length: 1\r\n\r\nz", false},
	{"large body", plainHead + fmt.Sprintf("Content-Length: %d\r\n\r\n", maxLength+1) + strings.Repeat("a", maxLength+1), false},
	{"short body", plainHead + "Content-Length: 5\r\n\r\nab", true},
	{"half a head", plainHead, false},
	{"half a first line", "POST /m", false},
	{"nothing", "", true},
	{"garbage", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc", false},
	{"empty lines first", "\r\n\r\n" + plainHead + "Content-Length: 1\r\n\r\nz", false},
	{"plain, then odd", plainHead + "Content-Length: 1\r\n\r\na" + plainHead + "Transfer-Encoding: chunked\r\n\r\n1\r\nz\r\n0\r\n\r\n" + plainHead + "Content-Length: 1\r\n\r\nb", false},
	{"more than the length", plainHead + "Content-Length: 1\r\n\r\nabcdef", false},
	{"expects", plainHead + "Expect: 100-continue\r\nContent-Length: 1\r\n\r\nz", false},
	{"expects the impossible", plainHead + "Expect: x\r\nContent-Length: 1\r\n\r\nz", false},
}

// TestLikeNetHTTP checks that handlers and clients see the same as with net/http alone.
func TestLikeNetHTTP(t *testing.T) {
	reference := &http.Server{Handler: http.HandlerFunc(tell), ErrorLog: discard}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go reference.Serve(l)
	defer reference.Close()
	for _, r := range requests {
		t.Run(r.name, func(t *testing.T) {
			s := serve(t, tell)
			want := exchangeRaw(t, l.Addr().String(), r.raw, 3)
			got := exchangeRaw(t, s.addr, r.raw, 3)
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("got  %.600q\nwant %.600q", got, want)
			}
			if n := s.other.Load(); r.plain && n > 0 || !r.plain && n != 1 {
				t.Errorf("%d connections were handed to net/http, plain is %v", n, r.plain)
			}
		})
	}
}

// TestBytewise checks that the result does not depend on how the bytes of a request are split.
func TestBytewise(t *testing.T) {
	s := serve(t, tell)
	nc, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	raw := plainHead + "Content-Length: 5\r\n\r\nabcde"
	for i := range len(raw) {
		if _, err := nc.Write([]byte{raw[i]}); err != nil {
			t.Fatal(err)
		}
	}
	resp, err := http.ReadResponse(bufio.NewReader(nc), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var seen told
	if err := json.NewDecoder(resp.Body).Decode(&seen); err != nil || seen.Body != "abcde" || s.other.Load() != 0 {
		t.Errorf("%v %+v, %d to net/http", err, seen, s.other.Load())
	}
}

// TestAnswers checks that each kind of response of a handler reaches a client of net/http unchanged, and that the
// connection is reused.
func TestAnswers(t *testing.T) {
	large := strings.Repeat("0123456789", 20_000)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		rc := http.NewResponseController(w)
		w.Header().Set("X-Case", r.Header.Get("X-Case"))
		switch r.Header.Get("X-Case") {
		case "nothing":
		case "small":
			io.WriteString(w, "small")
		case "announced":
			w.Header()["Content-Length"] = []string{"9"}
			w.WriteHeader(http.StatusTeapot)
			io.WriteString(w, "announ")
			io.WriteString(w, "ced")
		case "large":
			io.WriteString(w, large)
		case "large announced":
			w.Header().Set("Content-Length", fmt.Sprint(len(large)))
			io.WriteString(w, large)
		case "large in pieces":
			for i := 0; i < len(large); i += 1000 {
				io.WriteString(w, large[i:i+1000])
			}
		case "flushed":
			for _, part := range []string{"a", "b", large, "c"} {
				io.WriteString(w, part)
				if err := rc.Flush(); err != nil {
					t.Error(err)
				}
			}
		case "no content":
			w.WriteHeader(http.StatusNoContent)
			if _, err := w.Write([]byte("x")); !errors.Is(err, http.ErrBodyNotAllowed) {
				t.Errorf("write after a status without a body: %v", err)
			}
		case "lines in a value":
			w.Header().Set("X-Split", "a\r\nSet-Cookie: b")
			w.Header()["Bad Name"] = []string{"x"}
		}
	})
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1}}
	defer client.CloseIdleConnections()
	for _, c := range []struct {
		name, body string
		status     int
		length     int64
	}{
		{"nothing", "", 200, 0}, {"small", "small", 200, 5}, {"announced", "announced", 418, 9}, {"large", large, 200, -1},
		{"large announced", large, 200, int64(len(large))}, {"large in pieces", large, 200, -1}, {"flushed", "ab" + large + "c", 200, -1},
		{"no content", "", 204, 0}, {"lines in a value", "", 200, 0},
	} {
		req, _ := http.NewRequest(http.MethodPost, "http://"+s.addr+"/mcp", strings.NewReader("body"))
		req.Header.Set("X-Case", c.name)
		resp, err := client.Do(req)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || string(body) != c.body || resp.StatusCode != c.status || resp.ContentLength != c.length || resp.Header.Get("X-Case") != c.name {
			t.Errorf("%s: %v, status %d, length %d, %d bytes, %v", c.name, err, resp.StatusCode, resp.ContentLength, len(body), resp.Header)
		}
		if resp.Header.Get("Set-Cookie") != "" || resp.Header.Get("Date") == "" || len(resp.Header["Bad Name"]) > 0 {
			t.Errorf("%s: header %v", c.name, resp.Header)
		}
	}
	if n := len(s.plain.list()); n != 1 || s.other.Load() != 0 {
		t.Errorf("%d connections, %d at net/http, want a single reused one", n, s.other.Load())
	}
}

func (l *ServingListener) list() (all []*connState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for p, here := range l.conns {
		if here {
			all = append(all, p)
		}
	}
	return all
}

// TestClientDisconnects checks that the context of a request ends when its client disconnects, during a long handler
// and when a response cannot be written.
func TestClientDisconnects(t *testing.T) {
	ended := make(chan error, 1)
	began := make(chan bool)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		io.ReadAll(r.Body)
		began <- true
		<-r.Context().Done()
		ended <- context.Cause(r.Context())
	})
	for _, body := range []string{"", "abc"} {
		nc, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(nc, "%sContent-Length: %d\r\n\r\n%s", plainHead, len(body), body)
		<-began
		nc.Close()
		select {
		case <-ended:
		case <-time.After(patience):
			t.Fatal("the handler's context did not end after the client disconnected")
		}
	}
}

// TestCancel checks that a handler can end the context of its own request, and of no other request.
func TestCancel(t *testing.T) {
	enough := errors.New("enough")
	var before func(error)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		io.ReadAll(r.Body)
		if before != nil {
			before(enough)
		}
		if err := r.Context().Err(); err != nil {
			t.Errorf("at the start, the context has error %v", err)
		}
		before = w.(interface{ Cancel(why error) }).Cancel
		before(enough)
		if err := context.Cause(r.Context()); err != enough {
			t.Errorf("after Cancel, the context has error %v", err)
		}
		w.Write([]byte("ok"))
	})
	nc, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	br := bufio.NewReader(nc)
	for range 3 {
		fmt.Fprintf(nc, "%sContent-Length: 2\r\n\r\nab", plainHead)
		resp, err := http.ReadResponse(br, nil)
		if err != nil {
			t.Fatal(err)
		}
		if body, _ := io.ReadAll(resp.Body); string(body) != "ok" {
			t.Errorf("response %q", body)
		}
	}
}

// TestWatchedAgain sends many requests on one connection. Each takes long enough for a disconnect watch, and the next
// one is sent while the previous one is answered.
func TestWatchedAgain(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		wait := time.NewTimer(watchAfter + watchAfter/2)
		defer wait.Stop()
		select {
		case <-r.Context().Done():
			t.Error("a connected client was reported as disconnected")
		case <-wait.C:
		}
		w.Write(body)
	})
	nc, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	br := bufio.NewReader(nc)
	for i := range 12 {
		fmt.Fprintf(nc, "%sContent-Length: 2\r\n\r\n%02d", plainHead, i)
		if i%2 == 0 {
			continue // the next request follows at once
		}
		for _, want := range []int{i - 1, i} {
			resp, err := http.ReadResponse(br, nil)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(resp.Body)
			if string(body) != fmt.Sprintf("%02d", want) {
				t.Fatalf("response %q, want %02d", body, want)
			}
		}
	}
}

// TestUnreadBody checks that the response of a handler that does not read the body arrives, and that the connection
// stays open.
func TestUnreadBody(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "no") })
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for range 3 {
		resp, err := client.Post("http://"+s.addr+"/mcp", "application/json", bytes.NewReader(make([]byte, maxLength)))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || string(body) != "no" {
			t.Fatalf("got %v %q", err, body)
		}
	}
}

// TestSlowClients checks that a head or body that does not arrive closes the connection.
func TestSlowClients(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.NewResponseController(w).SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		if _, err := io.ReadAll(r.Body); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("reading a body that does not arrive: %v", err)
		}
		w.WriteHeader(http.StatusRequestTimeout)
	})
	for name, raw := range map[string]string{
		"nothing": "", "half a head": plainHead, "half a body": plainHead + "Content-Length: 9\r\n\r\nab",
	} {
		nc, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(nc, raw)
		nc.SetReadDeadline(time.Now().Add(patience))
		got, err := io.ReadAll(nc)
		if err != nil || strings.HasPrefix(string(got), "HTTP/1.1 408") != (name == "half a body") {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		nc.Close()
	}
}

// TestPanic checks that a handler that panics closes its own connection and no other.
func TestPanic(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		io.ReadAll(r.Body)
		if r.Header.Get("X-Panic") != "" {
			io.WriteString(w, "half")
			panic(http.ErrAbortHandler)
		}
	})
	if got := exchangeRaw(t, s.addr, plainHead+"X-Panic: 1\r\nContent-Length: 0\r\n\r\n", 1); got[0] != "none" {
		t.Errorf("a partial response was sent: %q", got)
	}
	if got := exchangeRaw(t, s.addr, plainHead+"Content-Length: 0\r\n\r\n", 1); !strings.HasPrefix(got[0], "200") {
		t.Errorf("the next client got %q", got)
	}
}

// TestShutdown checks that requests in progress are completed, that idle connections are closed at once, and that a
// response announces that its connection will be closed.
func TestShutdown(t *testing.T) {
	began, finish := make(chan bool), make(chan bool)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		io.ReadAll(r.Body)
		if r.Header.Get("X-Wait") != "" {
			began <- true
			<-finish
		}
		io.WriteString(w, "done")
	})
	dial := func(extra string) (net.Conn, *bufio.Reader) {
		nc, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { nc.Close() })
		io.WriteString(nc, plainHead+extra+"Content-Length: 0\r\n\r\n")
		return nc, bufio.NewReader(nc)
	}
	_, idle := dial("")
	if resp, err := http.ReadResponse(idle, nil); err != nil {
		t.Fatal(err)
	} else {
		io.ReadAll(resp.Body)
	}
	_, busy := dial("X-Wait: 1\r\n")
	<-began
	var stopped sync.WaitGroup
	stopped.Go(func() {
		if err := s.plain.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if _, err := idle.ReadByte(); err == nil {
		t.Error("an idle connection received data")
	}
	s.plain.list() // waits until all connections have been notified
	finish <- true
	resp, err := http.ReadResponse(busy, nil)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	if string(body) != "done" || !resp.Close {
		t.Errorf("%q, close %v", body, resp.Close)
	}
	stopped.Wait()
}

// TestStopAnswersConnectedClients checks that a client that connected before the stop gets a response to a request that
// it sends at once, and that later connections are refused.
func TestStopAnswersConnectedClients(t *testing.T) {
	inner := listen(t)
	s := serveOn(t, inner, tell)
	var conns []net.Conn
	var readers []*bufio.Reader
	for range 4 {
		nc, br := dialRaw(t, s.addr)
		conns, readers = append(conns, nc), append(readers, br)
	}
	io.WriteString(conns[1], plainHead) // half of a request
	s.hear(t, len(conns))
	var closing sync.WaitGroup
	closing.Go(func() {
		if err := s.plain.Close(); err != nil {
			t.Error(err)
		}
		if nc, err := net.Dial("tcp", s.addr); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("a later connection got %v, %v", nc, err)
		}
	})
	<-s.plain.ended
	io.WriteString(conns[0], plainHead+"Content-Length: 0\r\n\r\n")
	io.WriteString(conns[1], "Content-Length: 0\r\n\r\n")
	io.WriteString(conns[2], plainHead+"Connection: close\r\nContent-Length: 0\r\n\r\n") // for net/http
	for i, br := range readers {
		resp, err := http.ReadResponse(br, nil)
		switch asked := i < 3; {
		case asked && (err != nil || resp.StatusCode != http.StatusOK || !resp.Close):
			t.Errorf("connection %d: %+v, %v", i, resp, err)
		case !asked && err == nil:
			t.Errorf("a connection without a request got %+v", resp)
		}
	}
	closing.Wait()
	if err := s.plain.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestStopLosesNoConnection checks that a client that could connect to a stopping server gets a response, however many
// clients connect at that moment.
func TestStopLosesNoConnection(t *testing.T) {
	if testing.Short() {
		t.Skip("many connections")
	}
	if runtime.GOOS != "linux" {
		t.Skip("only Linux can refuse connections during the stop")
	}
	for i := range 8 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			s := serve(t, tell)
			var asked, lost atomic.Int64
			var clients sync.WaitGroup
			for range 16 {
				clients.Go(func() {
					for {
						nc, err := net.Dial("tcp", s.addr)
						if err != nil {
							return // refused: the client can connect elsewhere
						}
						io.WriteString(nc, plainHead+"Connection: close\r\nContent-Length: 0\r\n\r\n")
						if resp, err := http.ReadResponse(bufio.NewReader(nc), nil); err != nil || resp.StatusCode != http.StatusOK {
							lost.Add(1)
						}
						nc.Close()
						asked.Add(1)
					}
				})
			}
			until(t, "200 have asked", func() bool { return asked.Load() >= 200 })
			if err := s.plain.Close(); err != nil {
				t.Error(err)
			}
			clients.Wait()
			if n := lost.Load(); n > 0 {
				t.Errorf("%d of %d requests got no response", n, asked.Load())
			}
		})
	}
}

// TestStopTimeout checks that a stop that takes too long ends the remaining requests.
func TestStopTimeout(t *testing.T) {
	began := make(chan bool)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		io.ReadAll(r.Body)
		began <- true
		<-r.Context().Done()
	})
	nc, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	io.WriteString(nc, plainHead+"Content-Length: 0\r\n\r\n")
	<-began
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	if err := s.plain.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

// TestNoMixing checks that many concurrent clients each get their own response.
func TestNoMixing(t *testing.T) {
	s := serveOn(t, listen(t), tell, patient, func(o *Options) { o.MaxConns = 100 }) // no client is slow, however busy the machine
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}
	defer client.CloseIdleConnections()
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			for j := range 200 {
				mark := fmt.Sprintf("%d-%d", i, j)
				req, _ := http.NewRequest(http.MethodPost, "http://"+s.addr+"/mcp/"+fmt.Sprint(j%3), strings.NewReader(strings.Repeat(mark, 1+j%50)))
				req.Header.Set("X-Mark", mark)
				resp, err := client.Do(req)
				if err != nil {
					t.Error(err)
					return
				}
				var seen told
				err = json.NewDecoder(resp.Body).Decode(&seen)
				resp.Body.Close()
				if err != nil || seen.Header.Get("X-Mark") != mark || seen.Body != strings.Repeat(mark, 1+j%50) || seen.Path != fmt.Sprintf("/mcp/%d", j%3) {
					t.Errorf("%v: %+v, want %s", err, seen, mark)
				}
			}
		})
	}
	all.Wait()
}

// FuzzLikeNetHTTP checks that every request that the simple parser accepts is read as by net/http.
func FuzzLikeNetHTTP(f *testing.F) {
	for _, r := range requests {
		if len(r.raw) <= maxHeadSize {
			f.Add([]byte(r.raw), []byte(plainHead))
		}
	}
	f.Fuzz(func(t *testing.T, head, before []byte) {
		var s headerCache
		s.parseHead(before) // earlier heads of the connection must not matter
		r, err := s.parseHead(head)
		want, wantErr := http.ReadRequest(bufio.NewReader(bytes.NewReader(head)))
		if err != nil {
			return // net/http serves this request
		}
		if wantErr != nil {
			t.Fatalf("accepted as plain, but net/http returns %v", wantErr)
		}
		got := r.toHTTPRequest(context.Background(), "", http.NoBody)
		if got.Method != want.Method || *got.URL != *want.URL || got.RequestURI != want.RequestURI || got.Host != want.Host ||
			got.ContentLength != want.ContentLength || fmt.Sprint(got.Header) != fmt.Sprint(want.Header) || want.Close || len(want.TransferEncoding) > 0 {
			t.Fatalf("got  %+v\nwant %+v", got, want)
		}
		rest, _ := io.ReadAll(want.Body)
		if body := head[r.size:]; !bytes.HasPrefix(body, rest) || int64(len(rest)) != min(r.length, int64(len(body))) {
			t.Fatalf("the body at offset %d is %q", r.size, rest)
		}
	})
}

func BenchmarkRequest(b *testing.B) {
	h := func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header()["Content-Length"] = []string{fmt.Sprint(len(body))}
		w.Write(body)
	}
	s := serve(b, h)
	reference := &http.Server{Handler: http.HandlerFunc(h)}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	go reference.Serve(l)
	defer reference.Close()
	for name, addr := range map[string]string{"http1": s.addr, "nethttp": l.Addr().String()} {
		b.Run(name, func(b *testing.B) {
			nc, err := net.Dial("tcp", addr)
			if err != nil {
				b.Fatal(err)
			}
			defer nc.Close()
			raw := []byte(plainHead + "Accept: application/json, text/event-stream\r\nMcp-Session-Id: abcdefghijklmnop\r\nContent-Length: 200\r\n\r\n" + strings.Repeat("a", 200))
			answer := make([]byte, 4096)
			b.ReportAllocs()
			for b.Loop() {
				nc.Write(raw)
				nc.Read(answer)
			}
		})
	}
}
