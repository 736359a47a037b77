//go:build unix

package transport

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mcpproxy/internal/mcp/session"
)

// rawServer answers each request on a connection with the text from script. An empty text closes the connection.
func rawServer(t testing.TB, script func(conn, request int) string) *url.URL {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for conn := 0; ; conn++ {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer nc.Close()
				br := bufio.NewReader(nc)
				for request := 0; ; request++ {
					r, err := http.ReadRequest(br)
					if err != nil {
						return
					}
					io.Copy(io.Discard, r.Body)
					answer := script(conn, request)
					if answer == "" {
						return
					}
					io.WriteString(nc, answer)
				}
			})
		}
	})
	t.Cleanup(func() {
		ln.Close()
		wg.Wait()
	})
	return &url.URL{Scheme: "http", Host: ln.Addr().String(), Path: "/mcp"}
}

func leanFor(t testing.TB, u *url.URL) (*leanClient, *HTTPRequest) {
	t.Helper()
	head, err := newRequestHead(u, http.Header{"X-Test": {"1"}})
	if err != nil {
		t.Fatal(err)
	}
	c := newLeanClient(u, here)
	t.Cleanup(c.Close)
	return c, &HTTPRequest{Method: "POST", Head: head, Body: []byte("{}")}
}

func fetch(c HTTPClient, r *HTTPRequest) (status int, body string, err error) {
	a, err := c.Do(context.Background(), r)
	if err != nil {
		return 0, "", err
	}
	b, err := readBody(a, 1<<20)
	status = a.Status
	a.Body.Close()
	return status, string(b), err
}

// TestLeanNeverSendsTwice checks that a request is not sent again if the server reads it and closes the connection. The
// server may have executed it.
func TestLeanNeverSendsTwice(t *testing.T) {
	var requests atomic.Int32
	u := rawServer(t, func(_, request int) string {
		if requests.Add(1); request == 1 {
			return ""
		}
		return "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
	})
	c, r := leanFor(t, u)
	if _, _, err := fetch(c, r); err != nil {
		t.Fatal(err)
	}
	_, _, err := fetch(c, r)
	if err == nil || session.IsNotSent(err) || requests.Load() != 2 {
		t.Errorf("error %v after %d requests", err, requests.Load())
	}
}

// TestLeanNoticesDeadConnections checks that a connection that the server closed while it was idle is not used.
func TestLeanNoticesDeadConnections(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") }))
	defer s.Close()
	u, _ := url.Parse(s.URL)
	c, r := leanFor(t, u)
	for range 20 {
		if _, body, err := fetch(c, r); err != nil || body != "ok" {
			t.Fatalf("body %q, error %v", body, err)
		}
		s.CloseClientConnections()
	}
}

func TestLeanDialFailureIsUnsent(t *testing.T) {
	c, r := leanFor(t, &url.URL{Scheme: "http", Host: "127.0.0.1:1"})
	if _, _, err := fetch(c, r); !session.IsNotSent(err) {
		t.Errorf("error %v", err)
	}
}

func TestLeanEndsWithTheContext(t *testing.T) {
	for _, where := range []string{"head", "body"} {
		t.Run(where, func(t *testing.T) {
			asked := make(chan struct{}, 1)
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				if where == "body" {
					io.WriteString(w, "begin")
					w.(http.Flusher).Flush()
				}
				asked <- struct{}{}
				<-r.Context().Done()
			}))
			defer s.Close()
			u, _ := url.Parse(s.URL)
			c, r := leanFor(t, u)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if where == "head" {
				go func() { <-asked; cancel() }()
			}
			a, err := c.Do(ctx, r)
			if where == "head" {
				if err != context.Canceled {
					t.Errorf("error %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			go func() { <-asked; cancel() }()
			if _, err := io.ReadAll(a.Body); err == nil {
				t.Error("the body ended")
			}
			a.Body.Close()
			if len(c.idle) != 0 {
				t.Error("the connection is kept for reuse")
			}
		})
	}
}

// TestLeanStreamsAreReused checks that a connection is reused after its stream has ended, even if the reader stopped
// before the end arrived.
func TestLeanStreamsAreReused(t *testing.T) {
	var conns atomic.Int32
	end := make(chan struct{})
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "data: 1\n\n")
		w.(http.Flusher).Flush()
		select {
		case <-end:
		case <-r.Context().Done():
		}
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			conns.Add(1)
		}
	}
	s.Start()
	defer s.Close()
	u, _ := url.Parse(s.URL)
	c, r := leanFor(t, u)
	take := func() {
		t.Helper()
		a, err := c.Do(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		var b [9]byte
		if _, err := io.ReadFull(a.Body, b[:]); err != nil || a.Media != events {
			t.Fatal(err)
		}
		a.Body.Close()
	}
	take()
	take() // the first stream has not ended
	if n := conns.Load(); n != 2 || len(c.unfinished) != 2 {
		t.Fatalf("%d connections, %d unfinished", n, len(c.unfinished))
	}
	end <- struct{}{}
	end <- struct{}{}
	for _, conn := range c.unfinished {
		for conn.peek() == peekSilent { // the end has not arrived yet
			runtime.Gosched()
		}
	}
	for range 10 {
		go func() { end <- struct{}{} }()
		take()
		for len(c.unfinished) > 0 && c.unfinished[0].peek() == peekSilent {
			runtime.Gosched()
		}
	}
	if n := conns.Load(); n > 3 {
		t.Errorf("%d connections", n)
	}
}

// deadlines counts the deadlines that are set on a connection.
type deadlines struct {
	net.Conn
	set int
}

func (d *deadlines) SetReadDeadline(by time.Time) error {
	d.set++
	return d.Conn.SetReadDeadline(by)
}

func TestLeanStreamsEndWithTheirAnswer(t *testing.T) {
	for _, tt := range []struct {
		end     string
		left    int // unread bytes of the response
		set     int // number of deadlines
		keeps   bool
		pending bool
	}{
		{end: "0\r\n\r\n", keeps: true},
		{end: "0\r\nTrailer: 1\r\n\r\n", set: 2, keeps: true},
		{end: "0\r\n\r\n", left: 1, set: 2, keeps: true},
		{end: "5\r\n0\r\n\r\n\r\n0\r\n\r\n", set: 2, keeps: true},
		{end: "0\r\n\r\n0\r\n\r\n", set: 2, keeps: true}, // kept, but the excess data is found before the next use
		{end: "0\r\n\r", set: 2},
		{end: "", pending: true},
	} {
		const answer = "data: 1\n\n"
		u := rawServer(t, func(int, int) string {
			return "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/event-stream\r\n\r\n9\r\n" + answer + "\r\n" + tt.end
		})
		c, r := leanFor(t, u)
		a, err := c.Do(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		conn := a.Body.(*leanConn)
		seen := &deadlines{Conn: conn.nc}
		conn.nc = seen
		if _, err := io.ReadFull(a.Body, make([]byte, len(answer)-tt.left)); err != nil {
			t.Fatal(err)
		}
		a.Body.Close()
		if seen.set != tt.set || (len(c.idle) == 1) != tt.keeps || (len(c.unfinished) == 1) != tt.pending {
			t.Errorf("%q, %d left: %d deadlines, %d idle, %d unfinished", tt.end, tt.left, seen.set, len(c.idle), len(c.unfinished))
		}
	}
}

func TestLeanReaps(t *testing.T) {
	u := rawServer(t, func(int, int) string { return "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" })
	c, r := leanFor(t, u)
	fetch(c, r)
	if c.CloseIdle(time.Now()); len(c.idle) != 1 {
		t.Fatal("a recently used connection was closed")
	}
	if c.CloseIdle(time.Now().Add(2 * idleConnTime)); len(c.idle) != 0 {
		t.Error("an old connection is kept")
	}
	fetch(c, r)
	c.Close()
	fetch(c, r)
	if len(c.idle) != 0 {
		t.Error("a closed client keeps connections")
	}
}

func TestBodiesAreBounded(t *testing.T) {
	for name, raw := range map[string]string{
		"length":  "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + strings.Repeat("x", 1000),
		"chunked": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3e8\r\n" + strings.Repeat("x", 1000) + "\r\n0\r\n\r\n",
	} {
		u := rawServer(t, func(int, int) string { return raw })
		c, r := leanFor(t, u)
		a, err := c.Do(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := readBody(a, 999); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: error %v", name, err)
		}
		a.Body.Close()
	}
}

// countedBody returns n bytes and records the largest buffer that was passed to Read.
type countedBody struct{ n, most int }

func (b *countedBody) Read(p []byte) (int, error) {
	b.most = max(b.most, len(p))
	n := min(len(p), b.n, 64<<10)
	if b.n -= n; n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (b *countedBody) Close() error { return nil }

// TestBuffersGrowWithReceivedBytes checks that an announced length allocates nothing until the body arrives.
func TestBuffersGrowWithReceivedBytes(t *testing.T) {
	for _, tt := range []struct{ length, comes, room int }{
		{100, 100, 100},
		{16 << 20, 1000, trustedLength},
		{16 << 20, 3 << 20, 4 * trustedLength},
		{5 << 20, 5 << 20, 4 * trustedLength},
		{-1, 1000, 4 << 10},
	} {
		b := &countedBody{n: tt.comes}
		body, err := readBody(&HTTPResponse{length: int64(tt.length), Body: b}, 16<<20)
		if whole := tt.length < 0 || tt.length == tt.comes; whole != (err == nil) || whole && len(body) != tt.comes {
			t.Errorf("%+v: %d bytes, error %v", tt, len(body), err)
		}
		if b.most > tt.room+tt.room/4 { // rounded up by the allocator
			t.Errorf("%+v: the buffer has room for %d bytes", tt, b.most)
		}
	}
}

// TestExchangersAgree sends bodies of all sizes through both clients to a real server with all kinds of responses.
func TestExchangersAgree(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Mcp-Session-Id", "s")
		w.Header().Set("X-Got", r.Header.Get("X-Test")+" "+r.Method+" "+r.URL.String()+" "+r.Host)
		w.Header().Set("Content-Type", "Application/JSON; charset=UTF-8")
		w.WriteHeader(200 + len(body)%3)
		if len(body)%2 == 1 { // send without a length
			w.(http.Flusher).Flush()
		}
		w.Write(body)
	}))
	defer s.Close()
	u, _ := url.Parse(s.URL + "/a%20b?c=d")
	lean, r := leanFor(t, u)
	std := newStdClient(here)
	defer std.Close()
	for name, c := range map[string]HTTPClient{"lean": lean, "std": std} {
		for _, n := range []int{0, 1, 2, 1000, 4095, maxCopied, maxCopied + 1, 1 << 20} {
			r.Body = bytes.Repeat([]byte{'y'}, n)
			a, err := c.Do(t.Context(), r)
			if err != nil {
				t.Fatalf("%s, %d: %v", name, n, err)
			}
			body, err := readBody(a, 2<<20)
			if err != nil || !bytes.Equal(body, r.Body) || a.Status != 200+n%3 || a.Media != JSON || a.Session != "s" {
				t.Errorf("%s, %d: status %d, media %d, session %q, %d bytes, error %v", name, n, a.Status, a.Media, a.Session, len(body), err)
			}
			a.Body.Close()
		}
	}
}

func TestStdClientEndsWithTheContext(t *testing.T) {
	asked, hold := make(chan struct{}, 1), make(chan struct{})
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		asked <- struct{}{}
		<-hold
	}))
	defer s.Close()
	u, _ := url.Parse(s.URL)
	head, err := newRequestHead(u, http.Header{})
	if err != nil {
		t.Fatal(err)
	}
	c := newStdClient(here)
	c.transport.TLSClientConfig = s.Client().Transport.(*http.Transport).TLSClientConfig
	defer c.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-asked; cancel() }()
	if _, err := c.Do(ctx, &HTTPRequest{Method: "POST", Head: head, Body: []byte("{}")}); err != context.Canceled || session.IsNotSent(err) {
		t.Errorf("error %v", err)
	}
	close(hold)
	s.Close()
	if _, err := c.Do(t.Context(), &HTTPRequest{Method: "POST", Head: head, Body: []byte("{}")}); !session.IsNotSent(err) {
		t.Errorf("error %v", err)
	}
}

func TestNewExchanger(t *testing.T) {
	for raw, lean := range map[string]bool{"http://127.0.0.1:1/": true, "https://127.0.0.1:1/": false} {
		u, _ := url.Parse(raw)
		c, err := NewClient(u, false)
		if _, is := c.(*leanClient); err != nil || is != lean {
			t.Errorf("%s: %T, error %v", raw, c, err)
		}
	}
}

func TestHeaderRefusesInjection(t *testing.T) {
	u, _ := url.Parse("http://h/p")
	for _, h := range []http.Header{{"A": {"b\r\nc: d"}}, {"A b": {"c"}}, {"": {"x"}}, {"A": {"x\x00"}}} {
		if _, err := newRequestHead(u, h); err == nil {
			t.Errorf("%q is accepted", h)
		}
	}
	h, err := newRequestHead(u, http.Header{"Host": {"other"}, "A": {"b"}})
	if err != nil || string(h.block) != " /p HTTP/1.1\r\nHost: other\r\nA: b\r\n" {
		t.Errorf("block %q, error %v", h.block, err)
	}
}

func BenchmarkExchange(b *testing.B) {
	answer := `{"jsonrpc":"2.0","id":1234567,"result":{"content":[{"type":"text","text":"` + strings.Repeat("x", 400) + `"}]}}`
	u := rawServer(b, func(int, int) string {
		return "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: " + strconv.Itoa(len(answer)) + "\r\n\r\n" + answer
	})
	lean, r := leanFor(b, u)
	std := newStdClient(here)
	defer std.Close()
	for _, c := range []struct {
		name string
		HTTPClient
	}{{"lean", lean}, {"nethttp", std}} {
		for _, par := range []int{1, 32} {
			b.Run(fmt.Sprintf("%s/%d", c.name, par), func(b *testing.B) {
				b.ReportAllocs()
				b.SetParallelism(par)
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						if _, _, err := fetch(c, r); err != nil {
							b.Error(err)
							return
						}
					}
				})
			})
		}
	}
}
