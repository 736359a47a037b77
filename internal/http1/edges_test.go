package http1

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// dialRaw gives a connection and what reads its answers.
func dialRaw(t testing.TB, addr string) (net.Conn, *bufio.Reader) {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	nc.SetDeadline(time.Now().Add(20 * time.Second))
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

// noting is a listener that keeps the deadlines of its connections.
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

// TestNothingLeftBehind: the deadlines of an answer here are not those of what
// net/http answers later on the same connection.
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
		t.Error("net/http got a connection with a deadline for writing")
	}
}

// TestNear: a deadline that is set stays when it is a little early, unless it
// would be early by much of the time that is left.
func TestNear(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		set, by time.Duration // from now; 0 = none
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
		if got := near(at(c.set), at(c.by)); got != c.want {
			t.Errorf("%v for %v: %v", c.set, c.by, got)
		}
	}
}

// TestGoexit: a handler that ends its goroutine ends its connection.
func TestGoexit(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { runtime.Goexit() })
	nc, br := dialRaw(t, s.addr)
	io.WriteString(nc, plainHead+"Content-Length: 0\r\n\r\n")
	if _, err := br.ReadByte(); err != io.EOF {
		t.Errorf("got %v", err)
	}
}

// TestPanicOfText: what is not an error ends the connection too.
func TestPanicOfText(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { panic("text") })
	nc, br := dialRaw(t, s.addr)
	io.WriteString(nc, plainHead+"Content-Length: 0\r\n\r\n")
	if _, err := br.ReadByte(); err != io.EOF {
		t.Errorf("got %v", err)
	}
}

// TestCutOffUnread: a stop that takes too long ends a handler that has not read
// its body, of whose client nothing is known.
func TestCutOffUnread(t *testing.T) {
	began := make(chan bool)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		began <- true
		select {
		case <-r.Context().Done():
		case <-time.After(20 * time.Second):
			t.Error("the handler was not told")
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

// TestHalfClose: a client that has nothing more to send gets its answer.
func TestHalfClose(t *testing.T) {
	s := serve(t, tell)
	for _, length := range []int{0, 5, maxLength} {
		nc, br := dialRaw(t, s.addr)
		fmt.Fprintf(nc, "%sContent-Length: %d\r\n\r\n%s", plainHead, length, strings.Repeat("a", length))
		nc.(*net.TCPConn).CloseWrite()
		if resp, _ := readAnswer(t, br); resp.StatusCode != http.StatusOK {
			t.Errorf("%d bytes: %d", length, resp.StatusCode)
		}
		if _, err := br.ReadByte(); err != io.EOF {
			t.Errorf("%d bytes: then %v", length, err)
		}
	}
}
