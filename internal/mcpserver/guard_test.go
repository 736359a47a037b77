package mcpserver

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"mcpproxy/internal/config"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/wirejson"
)

func TestGuardBeforeEverything(t *testing.T) {
	h := newHarness(t)
	ping := `{"jsonrpc":"2.0","id":1,"method":"server/discover"}`
	for _, header := range []map[string]string{
		{"Host": "evil.com"}, {"Origin": "null"}, {"Origin": "http://evil.com"},
		{"Host": "evil.com", "X-Api-Key": testKey}, {"Origin": "https://evil.com", "X-Api-Key": testKey},
	} {
		for _, method := range []string{"GET", "POST", "DELETE", "OPTIONS", "PUT"} {
			body := ping
			if method == "GET" {
				body = ""
			}
			h.do(method, header, body).is(http.StatusForbidden).fails(wirejson.CodeInvalidRequest)
		}
	}
	h.cfg.Store(&config.Config{TrustedHosts: []string{"evil.com"}})
	h.modern("server/discover", "", "Host", "evil.com", "Origin", "https://evil.com").is(http.StatusOK)
}

func TestKey(t *testing.T) {
	h := newHarness(t)
	const wrong = "ffffffffffffffffffffffffffffffff"
	h.modern("server/discover", "").is(200)
	h.modern("server/discover", "", "X-Api-Key", wrong).is(401)
	h.modern("server/discover", "", "Authorization", "Bearer "+wrong).is(401)
	h.modern("server/discover", "", "X-Api-Key", testKey).is(200)
	h.cfg.Store(&config.Config{RequireMCPAuth: true})
	a := h.modern("server/discover", "").is(401)
	if a.header.Get("WWW-Authenticate") == "" {
		t.Error("no WWW-Authenticate")
	}
	a.fails(wirejson.CodeInvalidRequest)
	h.do("GET", nil, "").is(401)
	h.do("DELETE", nil, "").is(401)
	h.modern("server/discover", "", "X-Api-Key", wrong).is(401)
	h.modern("server/discover", "", "X-Api-Key", testKey).is(200)
	h.modern("server/discover", "", "Authorization", "Bearer "+testKey).is(200)
	h.callModern(callToolRead, `{"name":"a:b"}`).is(401)
	if h.gw.count() != 0 {
		t.Error("a call came through")
	}
}

// The socket needs no key and no checked host name, but an MCP client counts as an agent there as well.
func TestSocket(t *testing.T) {
	gw := &fakeGateway{}
	cfg := &config.Config{RequireMCPAuth: true}
	s := newServer(gw, func() *config.Config { return cfg }, io.Discard)
	for _, tt := range []struct {
		socket bool
		key    string
		status int
		actor  string
	}{{true, "", 200, "agent"}, {true, testKey, 200, "admin"}, {true, "wrong", 401, ""}, {false, "", 401, ""}, {false, testKey, 200, "admin"}} {
		r := modernCall()
		r.Host = "mcpproxy.sock"
		if !tt.socket {
			r.Host = "localhost"
		}
		if tt.socket {
			r = r.WithContext(auth.WithSocketMark(r.Context()))
		}
		if tt.key != "" {
			r.Header.Set("X-Api-Key", tt.key)
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code != tt.status {
			t.Errorf("%+v: %d %s", tt, w.Code, w.Body)
		}
		if tt.status == 200 && gw.lastCall(t).Caller.Actor.String() != tt.actor {
			t.Errorf("%+v: %s", tt, gw.lastCall(t).Caller.Actor)
		}
	}
}

func TestContentType(t *testing.T) {
	h := newHarness(t)
	for kind, want := range map[string]int{
		"application/json":                  200,
		"application/json; charset=utf-8":   200,
		"Application/JSON":                  200,
		"text/plain":                        415,
		"application/x-www-form-urlencoded": 415,
		"multipart/form-data; boundary=x":   415,
		"application/json-seq":              415,
		"text/plain, application/json":      415,
		"application/json, text/plain":      415,
		"-":                                 415,
	} {
		if a := h.modern("server/discover", "", "Content-Type", kind); a.status != want {
			t.Errorf("%q: %d", kind, a.status)
		}
	}
	h.modern("server/discover", "", "Content-Encoding", "gzip").is(415)
}

func TestMethods(t *testing.T) {
	h := newHarness(t)
	for _, method := range []string{"PUT", "PATCH", "OPTIONS", "TRACE", "FOO", "GET", "DELETE"} {
		a := h.do(method, nil, "").is(405)
		if a.header.Get("Allow") != "POST" {
			t.Errorf("%s: Allow %q", method, a.header.Get("Allow"))
		}
		session := h.open(mcp.Legacy)
		h.do(method, map[string]string{mcp.HeaderVersion: mcp.Modern, mcp.HeaderSession: session}, "").is(405)
	}
	h.do("HEAD", nil, "").is(405)
}

func TestBodyBound(t *testing.T) {
	h := newHarness(t)
	call := func(pad int) string {
		return `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"call_tool_read","arguments":{"name":"a:b","args":{"x":"` +
			strings.Repeat("x", pad) + `"}},` + modernMeta + `}}`
	}
	header := map[string]string{mcp.HeaderVersion: mcp.Modern, mcp.HeaderMethod: "tools/call", mcp.HeaderName: "call_tool_read"}
	h.post(header, call(maxBody-len(call(0)))).is(200)
	for _, size := range []int{maxBody + 1 - len(call(0)), 10 << 20, 20 << 20} {
		a := h.post(header, call(size)).is(413)
		if m := a.fails(wirejson.CodeInvalidRequest); !strings.Contains(m.Error.Message, "4 MiB") {
			t.Errorf("the bound is not named: %s", m.Error.Message)
		}
	}
	if n := h.gw.count(); n != 1 {
		t.Errorf("%d calls came through", n)
	}
	// Without Content-Length.
	for _, size := range []int{100, 5 << 20, 40 << 20} {
		req, _ := http.NewRequest("POST", h.http.URL, io.MultiReader(strings.NewReader(call(size))))
		req.Header = http.Header{"Content-Type": typeJSON, mcp.HeaderVersion: {mcp.Modern}, mcp.HeaderMethod: {"tools/call"}, mcp.HeaderName: {"call_tool_read"}}
		res, err := h.http.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		want := 413
		if size == 100 {
			want = 200
		}
		if res.StatusCode != want {
			t.Errorf("%d bytes in chunks: %d", size, res.StatusCode)
		}
	}
}

// A client that waits for "100 Continue" before it sends its body gets it.
func TestExpectContinue(t *testing.T) {
	h := newHarness(t)
	c, err := net.Dial("tcp", h.http.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = io.WriteString(c, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 10000000\r\nExpect: 100-continue\r\n\r\n")
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil || !strings.Contains(line, "413") {
		t.Fatalf("%q %v", line, err)
	}
}

func TestAccepts(t *testing.T) {
	for _, tt := range []struct {
		accept        []string
		plain, stream bool
	}{
		{nil, true, false},
		{[]string{"application/json"}, true, false},
		{[]string{"application/json, text/event-stream"}, true, true},
		{[]string{"application/json", "text/event-stream"}, true, true},
		{[]string{"text/event-stream"}, false, true},
		{[]string{"*/*"}, true, false},
		{[]string{"text/html"}, true, false},
	} {
		plain, stream := acceptedReplyKinds(http.Header{"Accept": tt.accept})
		if plain != tt.plain || stream != tt.stream {
			t.Errorf("%q: %v %v", tt.accept, plain, stream)
		}
	}
}
