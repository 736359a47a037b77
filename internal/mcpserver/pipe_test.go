package mcpserver

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcpproxy/internal/gate"
	"mcpproxy/internal/mcp"
)

// pipes is a listener without a network, whose deadlines follow the clock of a
// synctest bubble.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080} }

func (p *pipes) dial() net.Conn {
	client, server := net.Pipe()
	p.conns <- server
	return client
}

// inBubble runs a real http.Server with the surface in a bubble.
func inBubble(t *testing.T, gw BuiltinToolBackend, run func(t *testing.T, s *Server, dial func() net.Conn)) {
	synctest.Test(t, func(t *testing.T) {
		s := plainServer(gw)
		l := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
		srv := &http.Server{Handler: s}
		ended := make(chan error)
		go func() { ended <- srv.Serve(l) }()
		run(t, s, l.dial)
		s.Close()
		if err := srv.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
}

func rawCall(body string) string {
	return "POST /mcp HTTP/1.1\r\nHost: localhost:8080\r\nContent-Type: application/json\r\nAccept: application/json\r\n" +
		"Mcp-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: call_tool_read\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body
}

const callBody = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"call_tool_read","arguments":{"name":"a:b"},` + modernMeta + `}}`

// A body that does not arrive within ten seconds is refused.
func TestSlowBody(t *testing.T) {
	inBubble(t, &fakeGateway{}, func(t *testing.T, _ *Server, dial func() net.Conn) {
		c := dial()
		start := time.Now()
		_, _ = io.WriteString(c, strings.TrimSuffix(rawCall(callBody), "}}"))
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || res.StatusCode != http.StatusRequestTimeout || !res.Close {
			t.Fatalf("%v %+v", err, res)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		if d := time.Since(start); d != bodyTimeout {
			t.Errorf("after %s", d)
		}
		c.Close()
	})
}

// A client whose body was too late cannot keep the connection by sending more of it.
func TestSlowBodyEnds(t *testing.T) {
	inBubble(t, &fakeGateway{}, func(t *testing.T, _ *Server, dial func() net.Conn) {
		c := dial()
		var sending sync.WaitGroup
		defer sending.Wait()
		defer c.Close()
		start := time.Now()
		_, _ = io.WriteString(c, strings.Replace(rawCall(callBody), "Content-Length: ", "Content-Length: 10", 1))
		sending.Go(func() {
			for err := error(nil); err == nil; time.Sleep(time.Second) {
				_, err = io.WriteString(c, "1")
			}
		})
		br := bufio.NewReader(c)
		res, err := http.ReadResponse(br, nil)
		if err != nil || res.StatusCode != http.StatusRequestTimeout {
			t.Fatalf("%v %+v", err, res)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		if _, err := br.ReadByte(); err == nil {
			t.Error("something comes after the refusal")
		}
		if d := time.Since(start); d > bodyTimeout+time.Second {
			t.Errorf("after %s", d)
		}
	})
}

// A client that does not read is disconnected, even for a small response: a result, an error, an acknowledgement.
func TestClientThatDoesNotRead(t *testing.T) {
	inBubble(t, &fakeGateway{}, func(t *testing.T, s *Server, dial func() net.Conn) {
		id := direct(s, nil, initializeBody).Header().Get(mcp.HeaderSession)
		notification := `{"jsonrpc":"2.0","method":"notifications/initialized"}`
		for name, request := range map[string]string{
			"result": rawCall(callBody),
			"error":  rawCall(`{}`),
			"accepted": "POST /mcp HTTP/1.1\r\nHost: localhost:8080\r\nContent-Type: application/json\r\nMcp-Session-Id: " + id +
				"\r\nContent-Length: " + strconv.Itoa(len(notification)) + "\r\n\r\n" + notification,
		} {
			c := dial()
			_, _ = io.WriteString(c, request)
			time.Sleep(writeTimeout + time.Second)
			if n, err := c.Read(make([]byte, 1)); n != 0 || err == nil {
				t.Errorf("%s: still connected: %d %v", name, n, err)
			}
			c.Close()
		}
	})
}

// An announced body takes no memory before it arrives.
func TestAnnouncedBody(t *testing.T) {
	r := &readSizes{left: maxBody}
	body, err := readLimitedBody(r, maxBody)
	if err != nil || len(body) != maxBody {
		t.Fatalf("%d %v", len(body), err)
	}
	for _, room := range r.asked {
		if room.size > max(firstRoom, 3*room.had) {
			t.Errorf("room for %d bytes when %d had come", room.size, room.had)
		}
	}
	if _, err := readLimitedBody(strings.NewReader("short"), 100_000); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a body that ends early: %v", err)
	}
}

// readSizes returns zeros and notes for how many it was asked.
type readSizes struct {
	had, left int
	asked     []struct{ had, size int }
}

func (r *readSizes) Read(p []byte) (int, error) {
	r.asked = append(r.asked, struct{ had, size int }{r.had, len(p)})
	n := min(len(p), r.left)
	r.had, r.left = r.had+n, r.left-n
	return n, nil
}

// A call may take far longer than its body, and so may the pause to the next
// call on the same connection.
func TestSlowCall(t *testing.T) {
	gw := &fakeGateway{call: func(ctx ctxT, _ gate.LaneCall) (gate.CallResult, error) {
		select {
		case <-time.After(10 * time.Minute):
			return gate.CallResult{Result: json.RawMessage(`{"content":[]}`)}, nil
		case <-ctx.Done():
			return gate.CallResult{}, ctx.Err()
		}
	}}
	inBubble(t, gw, func(t *testing.T, _ *Server, dial func() net.Conn) {
		c := dial()
		br := bufio.NewReader(c)
		for range 3 {
			_, _ = io.WriteString(c, rawCall(callBody))
			res, err := http.ReadResponse(br, nil)
			if err != nil {
				t.Fatal(err)
			}
			if body, _ := io.ReadAll(res.Body); !strings.Contains(string(body), `"content":[]`) {
				t.Fatalf("%s", body)
			}
			time.Sleep(time.Hour)
		}
		c.Close()
	})
}

// An open stream sends keep-alives, keeps its session alive for days and ends with the server.
func TestHeldStream(t *testing.T) {
	inBubble(t, &fakeGateway{}, func(t *testing.T, s *Server, dial func() net.Conn) {
		id := direct(s, nil, initializeBody).Header().Get(mcp.HeaderSession)
		c := dial()
		_, _ = io.WriteString(c, "GET /mcp HTTP/1.1\r\nHost: localhost:8080\r\nAccept: text/event-stream\r\nMcp-Session-Id: "+id+"\r\n\r\n")
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || res.StatusCode != 200 {
			t.Fatalf("%v %+v", err, res)
		}
		start, lines := time.Now(), bufio.NewScanner(res.Body)
		for time.Since(start) < 48*time.Hour && lines.Scan() {
			if line := lines.Text(); line != "" && line[0] != ':' {
				t.Fatalf("%q", line)
			}
		}
		if time.Since(start) < 48*time.Hour {
			t.Fatalf("ended after %s", time.Since(start))
		}
		c.Close()
		synctest.Wait()
		if n := len(s.streams); n != 0 {
			t.Errorf("%d streams", n)
		}
		if code := direct(s, map[string]string{mcp.HeaderSession: id}, `{"jsonrpc":"2.0","id":1,"method":"ping"}`).Code; code != 200 {
			t.Errorf("the session: %d", code)
		}
	})
}
