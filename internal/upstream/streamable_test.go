//go:build unix

package upstream

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/testutil/mcptest"
)

func TestHTTPHeaders(t *testing.T) {
	t.Parallel()
	s := mcptest.New(mcptest.Options{}, mcptest.SampleTools()...)
	f := newFixture(t)
	spec := httpSpec(t, "s", s)
	spec.Headers = map[string]string{"Authorization": "Bearer x", "X-Two": "2"}
	f.ApplySpecs([]Spec{spec})
	f.must("s", "echo", "{}")
	f.ApplySpecs(nil)
	f.until(t, "the end", func() bool { return f.last("s").Phase == Stopped })
	for _, m := range s.Received("") {
		h := http.Header(m.Header)
		if h.Get("Authorization") != "Bearer x" || h.Get("X-Two") != "2" || h.Get("User-Agent") != "mcpproxy/1.0" ||
			h.Get("Accept") != "application/json, text/event-stream" || h.Get("Content-Type") != "application/json" {
			t.Errorf("%s: headers %v", m.Method, h)
		}
		session, version := h.Get("Mcp-Session-Id"), h.Get("Mcp-Protocol-Version")
		if m.Method == mcp.Discover {
			if session != "" || version != mcp.Modern || h.Get("Mcp-Method") != mcp.Discover {
				t.Errorf("the probe: headers %v", h)
			}
			continue
		}
		if first := m.Method == "initialize"; first != (session == "") || first != (version == "") || !first && version != mcp.Legacy {
			t.Errorf("%s: session %q, version %q", m.Method, session, version)
		}
	}
	s.Broadcast("x", nil) // no session is left to receive it
}

func TestHTTPSessionEndsWithStop(t *testing.T) {
	t.Parallel()
	deleted := make(chan string, 1)
	s := mcptest.New(mcptest.Options{}, mcptest.SampleTools()...)
	h := mcptest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			deleted <- r.Header.Get("Mcp-Session-Id")
		}
		s.ServeHTTP(w, r)
	}))
	f := newFixture(t)
	f.ApplySpecs([]Spec{{Name: "s", Transport: HTTP, URL: h.URL}})
	f.must("s", "echo", "{}")
	f.ApplySpecs(nil)
	if id := <-deleted; id != "session-1" {
		t.Errorf("deleted %q", id)
	}
}

// TestLostSessionIsRenewed: the server has forgotten the session. The call that gets the error is sent again in a new
// session.
func TestLostSessionIsRenewed(t *testing.T) {
	t.Parallel()
	for name, opt := range map[string]mcptest.Options{
		"404":       {NoStream: true},
		"400":       {NoStream: true, OldStatus: true},
		"by stream": {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := mcptest.New(opt, mcptest.SampleTools()...)
			f := newFixture(t)
			f.ApplySpecs([]Spec{httpSpec(t, "s", s)})
			f.must("s", "echo", "{}")
			s.DropSessions()
			f.must("s", "echo", `{"again":1}`)
			f.untilReady(t, "s", 1)
			if n := len(s.Received("initialize")); n != 2 {
				t.Errorf("%d handshakes", n)
			}
		})
	}
}

// TestCallIsNotRepeated: an error that only looks like a lost session does not cause a repetition, and a call that has
// reached the server is never reported as unsent.
func TestCallIsNotRepeated(t *testing.T) {
	t.Parallel()
	const lost = `"code":-32000,"message":"Bad Request: No valid session ID provided"`
	for name, tt := range map[string]struct {
		status int
		body   string
	}{
		"404":                 {404, ""},
		"the text of a 400":   {400, `{"jsonrpc":"2.0","id":null,"error":{` + lost + `}}`},
		"some session":        {400, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"The session with the bank did not close"}}`},
		"some session at 404": {404, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"No such session"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var runs atomic.Int32
			s := mcptest.New(mcptest.Options{}, append(mcptest.SampleTools(), mcptest.Tool{Definition: mcptest.ToolDefinition("x"), Handle: func(c *mcptest.Call) (json.RawMessage, error) {
				runs.Add(1)
				c.HTTP.Header().Set("Content-Type", "application/json")
				c.HTTP.WriteHeader(tt.status)
				c.HTTP.Write([]byte(tt.body))
				return nil, mcptest.ErrNoAnswer
			}})...)
			f := newFixture(t)
			f.ApplySpecs([]Spec{httpSpec(t, "s", s)})
			r, err := f.call("s", "x", "{}")
			if n := runs.Load(); n != 1 {
				t.Errorf("the tool ran %d times", n)
			}
			if tt.body != "" { // the server's answer has a body
				if err != nil || r.Error == nil || r.Error.Code != -32000 {
					t.Errorf("reply %+v, error %v", r, err)
				}
			} else if p := wantCode(t, err, problem.UpstreamError); !strings.Contains(p.Message, strconv.Itoa(tt.status)) || strings.Contains(p.Hint, "not sent") {
				t.Errorf("message %q, hint %q", p.Message, p.Hint)
			}
			f.must("s", "echo", "{}")
			if n := len(s.Received("initialize")); n != 1 {
				t.Errorf("%d handshakes", n)
			}
		})
	}
}

// TestSessionsThatNeverHold: the server forgets every session immediately. The call is sent twice at most, and the
// error does not claim that it was not sent.
func TestSessionsThatNeverHold(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	s := mcptest.New(mcptest.Options{NoStream: true}, mcptest.SampleTools()...)
	h := mcptest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch {
		case bytes.Contains(body, []byte("tools/call")):
			calls.Add(1)
			w.WriteHeader(http.StatusNotFound)
			return
		case bytes.Contains(body, []byte(`"ping"`)):
			w.WriteHeader(http.StatusNotFound)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		s.ServeHTTP(w, r)
	}))
	f := newFixture(t)
	f.ApplySpecs([]Spec{{Name: "s", Transport: HTTP, URL: h.URL}})
	_, err := f.call("s", "echo", "{}")
	if p := wantCode(t, err, problem.UpstreamError); strings.Contains(p.Message+p.Hint, "not sent") {
		t.Errorf("message %q, hint %q", p.Message, p.Hint)
	}
	if n := calls.Load(); n != 2 {
		t.Errorf("sent %d times", n)
	}
}

func TestHTTPServerReconnects(t *testing.T) {
	t.Parallel()
	for name, opt := range map[string]mcptest.Options{"stream": {}, "no stream": {NoStream: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := mcptest.New(opt, mcptest.SampleTools()...)
			h := mcptest.Serve(t, s)
			f := newFixture(t)
			f.ApplySpecs([]Spec{{Name: "s", Transport: HTTP, URL: h.URL}})
			f.must("s", "echo", "{}")
			h.Stop()
			_, err := f.call("s", "echo", "{}")
			if code(err) == problem.UpstreamError { // this call received the error itself
				_, err = f.call("s", "echo", "{}")
			}
			wantCode(t, err, problem.ServerUnavailable)
			h.Start()
			f.must("s", "echo", "{}")
		})
	}
}

func TestRedirects(t *testing.T) {
	t.Parallel()
	s := mcptest.New(mcptest.Options{}, mcptest.SampleTools()...)
	var elsewhere atomic.Int32
	other := mcptest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { elsewhere.Add(1) }))
	mux := http.NewServeMux()
	mux.Handle("/mcp", http.RedirectHandler("/mcp/", http.StatusTemporaryRedirect))
	mux.Handle("/mcp/{$}", s)
	mux.Handle("/away", http.RedirectHandler(other.URL, http.StatusPermanentRedirect))
	mux.Handle("/loop", http.RedirectHandler("/loop", http.StatusPermanentRedirect))
	h := mcptest.Serve(t, mux)
	f := newFixture(t)
	base := strings.TrimSuffix(h.URL, "/mcp")
	headers := map[string]string{"Authorization": "Bearer secret"}
	f.ApplySpecs([]Spec{
		{Name: "same", Transport: HTTP, URL: h.URL},
		{Name: "away", Transport: HTTP, URL: base + "/away", Headers: headers},
		{Name: "loop", Transport: HTTP, URL: base + "/loop"},
	})
	f.must("same", "echo", "{}")
	for _, name := range []string{"away", "loop"} {
		_, err := f.call(name, "echo", "{}")
		if p := wantCode(t, err, problem.ServerUnavailable); !strings.Contains(p.Message, "redirects") {
			t.Errorf("%s: %v", name, p)
		}
	}
	if elsewhere.Load() != 0 {
		t.Error("the request was redirected to another origin with its headers")
	}
}

func TestCredentialsInTheURL(t *testing.T) {
	t.Parallel()
	s := mcptest.New(mcptest.Options{}, mcptest.SampleTools()...)
	var bad atomic.Int32
	h := mcptest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "me" || password != "pw" {
			bad.Add(1)
		}
		s.ServeHTTP(w, r)
	}))
	f := newFixture(t)
	f.ApplySpecs([]Spec{{Name: "s", Transport: HTTP, URL: strings.Replace(h.URL, "://", "://me:pw@", 1)}})
	f.must("s", "echo", "{}")
	if bad.Load() != 0 {
		t.Errorf("%d requests without the credentials", bad.Load())
	}
}

// TestRefusals: the responses with which HTTP servers refuse requests.
func TestRefusals(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		status int
		kind   string
		body   string
		code   problem.Code // "" is a JSON-RPC error
		says   string
	}{
		{"login", 401, "text/plain", "who are you", problem.LoginNeeded, "login"},
		{"login with JSON", 401, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"no"}}`, problem.LoginNeeded, "login"},
		{"forbidden", 403, "text/plain", "no", problem.UpstreamError, "403"},
		{"broken", 500, "text/html", "<html>", problem.UpstreamError, "500"},
		{"JSON-RPC error", 400, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no","data":[1]}}`, "", ""},
		{"web page", 200, "text/html", "<html>", problem.UpstreamError, "neither JSON"},
		{"no JSON", 200, "application/json", "{", problem.UpstreamError, "not a JSON-RPC message"},
		{"nothing", 200, "application/json", "", problem.UpstreamError, "not a JSON-RPC message"},
		{"accepted", 202, "", "", problem.UpstreamError, "202"},
		{"other answer", 200, "application/json", `{"jsonrpc":"2.0","id":1234567890,"result":{}}`, problem.UpstreamError, "another request"},
		{"empty stream", 200, "text/event-stream", "", problem.UpstreamError, "ended before"},
		{"stream of comments", 200, "text/event-stream", ": hello\n\nevent: ping\n\n", problem.UpstreamError, "ended before"},
		{"stream of garbage", 200, "text/event-stream", "data: {\n\ndata: [\n\n", problem.UpstreamError, "ended before"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := mcptest.New(mcptest.Options{}, mcptest.Tool{Definition: mcptest.ToolDefinition("x"), Handle: func(c *mcptest.Call) (json.RawMessage, error) {
				c.HTTP.Header().Set("Content-Type", tt.kind)
				c.HTTP.WriteHeader(tt.status)
				c.HTTP.Write([]byte(tt.body))
				return nil, mcptest.ErrNoAnswer
			}})
			f := newFixture(t)
			f.ApplySpecs([]Spec{httpSpec(t, "s", s)})
			r, err := f.call("s", "x", "{}")
			if tt.code == "" {
				if err != nil || r.Error == nil || r.Error.Code != -32600 || string(r.Error.Data) != "[1]" {
					t.Errorf("reply %+v, error %v", r.Error, err)
				}
				return
			}
			if p := wantCode(t, err, tt.code); !strings.Contains(p.Message, tt.says) {
				t.Errorf("message %q does not contain %q", p.Message, tt.says)
			}
		})
	}
}

func TestLoginNeededToConnect(t *testing.T) {
	t.Parallel()
	h := mcptest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) }))
	f := newFixture(t)
	f.ApplySpecs([]Spec{{Name: "s", Transport: HTTP, URL: h.URL}})
	_, err := f.call("s", "x", "{}")
	wantCode(t, err, problem.LoginNeeded)
}

// TestProgressOnTheServersStream: many servers send progress on their own stream instead of the stream of the call.
func TestProgressOnTheServersStream(t *testing.T) {
	t.Parallel()
	got := make(chan string, 10)
	var s *mcptest.Server
	s = mcptest.New(mcptest.Options{}, mcptest.Tool{Definition: mcptest.ToolDefinition("x"), Handle: func(c *mcptest.Call) (json.RawMessage, error) {
		s.Broadcast("notifications/progress", json.RawMessage(`{"progressToken":`+string(c.ID)+`,"progress":1}`))
		s.Broadcast("notifications/progress", json.RawMessage(`{"progressToken":123456789,"progress":1}`))
		s.Broadcast("notifications/message", json.RawMessage(`{"data":"log"}`))
		<-got
		<-got
		return json.RawMessage(`{}`), nil
	}})
	f := newFixture(t)
	f.ApplySpecs([]Spec{httpSpec(t, "s", s)})
	var seen []string
	_, err := f.Call(t.Context(), "s", Call{Tool: "x", Meta: json.RawMessage(`{"progressToken":"p"}`),
		Notify: func(_ string, params json.RawMessage) {
			seen = append(seen, string(params))
			got <- ""
		}})
	if err != nil {
		t.Fatal(err)
	}
	if len(seen) != 2 || seen[0] != `{"progressToken":"p","progress":1}` || seen[1] != `{"data":"log"}` {
		t.Errorf("progress %q", seen)
	}
}

func TestBatchedAnswer(t *testing.T) {
	t.Parallel()
	s := mcptest.New(mcptest.Options{Protocol: "2025-03-26"}, mcptest.Tool{Definition: mcptest.ToolDefinition("x"), Handle: func(c *mcptest.Call) (json.RawMessage, error) {
		c.HTTP.Header().Set("Content-Type", "application/json")
		c.HTTP.Write([]byte(`[{"jsonrpc":"2.0","method":"notifications/message","params":{}},{"jsonrpc":"2.0","id":` + string(c.ID) + `,"result":{"a":1}}]`))
		return nil, mcptest.ErrNoAnswer
	}})
	f := newFixture(t)
	f.ApplySpecs([]Spec{httpSpec(t, "s", s)})
	if got := f.must("s", "x", "{}"); got != `{"a":1}` {
		t.Errorf("result %s", got)
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	h := httptest.NewTLSServer(mcptest.New(mcptest.Options{}, mcptest.SampleTools()...))
	defer h.Close()
	f := newFixture(t)
	f.ApplySpecs([]Spec{{Name: "s", Transport: HTTP, URL: h.URL}})
	_, err := f.call("s", "x", "{}")
	if p := wantCode(t, err, problem.ServerUnavailable); !strings.Contains(p.Message, "certificate") {
		t.Errorf("message %q", p.Message)
	}
}

// TestEventsWithoutAMessage: servers of 2025-11-25 begin a stream with an event that has only an ID.
func TestEventsWithoutAMessage(t *testing.T) {
	t.Parallel()
	s := mcptest.New(mcptest.Options{}, mcptest.Tool{Definition: mcptest.ToolDefinition("x"), Handle: func(c *mcptest.Call) (json.RawMessage, error) {
		c.WriteRaw([]byte(": hello\n\nid: 1\nretry: 10\ndata: \n\n"))
		return json.RawMessage(`{"a":1}`), nil
	}})
	f := newFixture(t)
	f.ApplySpecs([]Spec{httpSpec(t, "s", s)})
	if got := f.must("s", "x", "{}"); got != `{"a":1}` {
		t.Errorf("result %s", got)
	}
	if lines, _ := f.LogTail("s", 10); len(lines) != 1 {
		t.Errorf("log %q", lines)
	}
}

// TestServerThatRefusesNotifications: a server that refuses notifications can still be called.
func TestServerThatRefusesNotifications(t *testing.T) {
	t.Parallel()
	s := mcptest.New(mcptest.Options{}, mcptest.SampleTools()...)
	h := mcptest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if bytes.Contains(body, []byte(`"notifications/`)) {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		s.ServeHTTP(w, r)
	}))
	f := newFixture(t)
	f.ApplySpecs([]Spec{{Name: "s", Transport: HTTP, URL: h.URL}})
	f.must("s", "echo", "{}")
}

// TestChangeBeforeTheStreamIsOpen: if the server's stream opens late, earlier messages are lost, so MCPProxy lists the
// tools again.
func TestChangeBeforeTheStreamIsOpen(t *testing.T) {
	t.Parallel()
	s := mcptest.New(mcptest.Options{}, mcptest.Tool{Definition: mcptest.ToolDefinition("one")})
	open := make(chan struct{})
	h := mcptest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			s.ServeHTTP(w, r)
			return
		}
		<-open
		w.Header().Set("Content-Type", "text/event-stream")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	f := newFixture(t)
	f.ApplySpecs([]Spec{{Name: "s", Transport: HTTP, URL: h.URL}})
	f.untilReady(t, "s", 0)
	s.SetTools(mcptest.Tool{Definition: mcptest.ToolDefinition("two")})
	close(open)
	f.until(t, "the new list", func() bool { return slices.Equal(f.lastTools("s"), []string{"two"}) })
}
