//go:build unix

package transport

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"mcpproxy/internal/mcp/session"
)

func TestLeanResponses(t *testing.T) {
	tests := []struct {
		name, raw string
		status    int
		body      string
		keeps     bool // whether the connection is reused
	}{
		{"length", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, "hello", true},
		{"bare line ends", "HTTP/1.1 200 OK\nContent-Length: 5\n\nhello", 200, "hello", true},
		{"no reason", "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", 200, "", true},
		{"no body", "HTTP/1.1 204 No Content\r\n\r\n", 204, "", true},
		{"chunked", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\nTrailer: 1\r\n\r\n", 200, "hello", true},
		{"chunked wins", "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\nContent-Length: 3\r\n\r\n5\r\nhello\r\n0\r\n\r\n", 200, "hello", true},
		{"interim", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n", 202, "", true},
		{"close", "HTTP/1.1 200 OK\r\nConnection: Close\r\nContent-Length: 2\r\n\r\nok", 200, "ok", false},
		{"old", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", 200, "ok", false},
		{"old but kept", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok", 200, "ok", true},
		{"same length twice", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok", 200, "ok", true},
		{"too much", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok and more", 200, "ok", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var conns atomic.Int32
			u := rawServer(t, func(conn, _ int) string {
				conns.Store(int32(conn + 1))
				return tt.raw
			})
			c, r := leanFor(t, u)
			for range 3 {
				status, body, err := fetch(c, r)
				if err != nil || status != tt.status || body != tt.body {
					t.Fatalf("status %d, body %q, error %v", status, body, err)
				}
			}
			if kept := conns.Load() == 1; kept != tt.keeps {
				t.Errorf("%d connections for 3 requests", conns.Load())
			}
		})
	}
}

func TestLeanBodyUntilClose(t *testing.T) {
	u := rawServer(t, func(_, request int) string {
		if request > 0 {
			return ""
		}
		return "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello"
	})
	// The script breaks the connection only at the second request, so it is closed by the test.
	c, r := leanFor(t, u)
	a, err := c.Do(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	a.Body.(*leanConn).nc.(*net.TCPConn).CloseWrite()
	body, err := readBody(a, 100)
	if err != nil || string(body) != "hello" {
		t.Errorf("body %q, error %v", body, err)
	}
	a.Body.Close()
}

func TestLeanRefusesMalformedResponses(t *testing.T) {
	tests := map[string]string{
		"no http":            "SSH-2.0-OpenSSH\r\n\r\n",
		"version 2":          "HTTP/2.0 200 OK\r\n\r\n",
		"status":             "HTTP/1.1 2x0 OK\r\n\r\n",
		"low status":         "HTTP/1.1 099 OK\r\n\r\n",
		"long status":        "HTTP/1.1 2000 OK\r\n\r\n",
		"switching":          "HTTP/1.1 101 Switching\r\n\r\n",
		"no colon":           "HTTP/1.1 200 OK\r\nabc\r\n\r\n",
		"no name":            "HTTP/1.1 200 OK\r\n: x\r\n\r\n",
		"space before colon": "HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\nok",
		"folded":             "HTTP/1.1 200 OK\r\nA: b\r\n c: d\r\n\r\n",
		"two lengths":        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok",
		"negative length":    "HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nok",
		"signed length":      "HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nok",
		"huge length":        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nok",
		"gzip chunks":        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
		"chunk length":       "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n\r\n",
		"negative chunk":     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n\r\n",
		"huge chunk":         "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n\r\n",
		"prefixed chunk":     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0x2\r\nok\r\n0\r\n\r\n",
		"chunk end":          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nokok\r\n0\r\n\r\n",
		"long line":          "HTTP/1.1 200 OK\r\nA: " + strings.Repeat("x", maxHeadLine) + "\r\n\r\n",
		"long head":          "HTTP/1.1 200 OK\r\n" + strings.Repeat("A: "+strings.Repeat("x", 1000)+"\r\n", 70) + "\r\n",
		"endless interim":    strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", 5000),
	}
	for name, raw := range tests {
		t.Run(name, func(t *testing.T) {
			u := rawServer(t, func(int, int) string { return raw })
			c, r := leanFor(t, u)
			_, _, err := fetch(c, r)
			if !errors.Is(err, errMalformed) || session.IsNotSent(err) {
				t.Errorf("error %v", err)
			}
			if n := len(c.idle) + len(c.unfinished); n != 0 {
				t.Errorf("%d idle connections are kept", n)
			}
		})
	}
}

func TestLeanTruncatedBodies(t *testing.T) {
	for name, raw := range map[string]string{
		"length": "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello",
		"chunk":  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhello",
		"chunks": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
		"head":   "HTTP/1.1 200 OK\r\nContent-",
	} {
		t.Run(name, func(t *testing.T) {
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer ln.Close()
			go func() {
				nc, err := ln.Accept()
				if err != nil {
					return
				}
				http.ReadRequest(bufio.NewReader(nc))
				io.WriteString(nc, raw)
				nc.Close()
			}()
			c, r := leanFor(t, &url.URL{Scheme: "http", Host: ln.Addr().String()})
			if _, _, err = fetch(c, r); !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// bytesConn is a connection that reads from memory.
type bytesConn struct {
	net.Conn
	r io.Reader
}

func (c *bytesConn) Read(p []byte) (int, error)  { return c.r.Read(p) }
func (c *bytesConn) Write(p []byte) (int, error) { return len(p), nil }

// FuzzLeanResponse compares leanConn with net/http for responses that both accept.
func FuzzLeanResponse(f *testing.F) {
	f.Add([]byte("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"))
	f.Add([]byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"))
	f.Add([]byte("HTTP/1.0 404 \r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n"))
	f.Add([]byte("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		c := newLeanConn(nil, &bytesConn{r: bytes.NewReader(raw)})
		a, err := c.readHead()
		if err != nil {
			return
		}
		body, err := readBody(a, 1<<16)
		if err != nil {
			return
		}
		br := bufio.NewReader(bytes.NewReader(raw))
		var resp *http.Response
		for resp == nil || resp.StatusCode < 200 {
			if resp, err = http.ReadResponse(br, &http.Request{Method: "POST"}); err != nil {
				return // net/http is stricter than leanConn
			}
		}
		want, err := io.ReadAll(resp.Body)
		if err != nil {
			return
		}
		if resp.StatusCode != a.Status || !bytes.Equal(want, body) {
			t.Errorf("status %d, body %q; net/http: status %d, body %q", a.Status, body, resp.StatusCode, want)
		}
	})
}
