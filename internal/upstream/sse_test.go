//go:build unix

package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mcpproxy/internal/mcp/transport"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	protocol "mcpproxy/internal/mcp"

	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/testutil/mcptest"
)

func TestOfficialSDKOverSSE(t *testing.T) {
	t.Parallel()
	url, held, drop := mcptest.ServeSDKOverSSE(t)
	for name, spec := range map[string]Spec{
		"said":  {Name: "sdk", Transport: SSE, URL: url},
		"found": {Name: "sdk", Transport: HTTP, TrySSE: true, URL: url},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.ApplySpecs([]Spec{spec})
			f.untilReady(t, "sdk", 0)
			var got []string
			r, err := f.Call(t.Context(), "sdk", Call{Tool: "echo", Arguments: json.RawMessage(`{"text":"hi","steps":3}`),
				Meta:   json.RawMessage(`{"progressToken":"mine"}`),
				Notify: func(_ string, params json.RawMessage) { got = append(got, string(params)) }})
			if err != nil || !strings.Contains(string(r.Result), `"hi"`) {
				t.Fatalf("%s %v", r.Result, err)
			}
			if len(got) != 3 || !strings.Contains(got[2], `"mine"`) || !strings.Contains(got[2], `"progress":2`) {
				t.Errorf("progress %v", got)
			}

			var wg sync.WaitGroup
			for i := range 64 {
				wg.Go(func() {
					if got := f.must("sdk", "echo", fmt.Sprintf(`{"text":"<%d>"}`, i)); !strings.Contains(got, fmt.Sprintf(`\u003c%d\u003e`, i)) && !strings.Contains(got, fmt.Sprintf("<%d>", i)) {
						t.Errorf("call %d got %s", i, got)
					}
				})
			}
			wg.Wait()

			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() {
				<-held
				cancel()
			}()
			_, err = f.Call(ctx, "sdk", Call{Tool: "held", Arguments: json.RawMessage("{}")})
			if !errors.Is(err, context.Canceled) {
				t.Fatalf("error is %v", err)
			}
			select {
			case <-held:
			case <-time.After(patience):
				t.Fatal("the server got no cancellation")
			}

			drop() // the server reconnects
			f.untilReady(t, "sdk", 1)
			f.must("sdk", "echo", `{"text":"again"}`)

			converse(t, f)
		})
	}
}

// converse opens a client's own session with the server and uses it.
func converse(t *testing.T, f *fixture) {
	t.Helper()
	sv, err := f.ServerForRequest(t.Context(), "sdk")
	if err != nil {
		t.Fatal(err)
	}
	l, err := openOwn(t.Context(), sv)
	if err != nil {
		t.Fatalf("a client's own session: %v", err)
	}
	defer l.Stop(sv.StopNowSignal())
	var said []string
	r, err := l.Do(t.Context(), &session.Request{ID: json.RawMessage(`"x"`), Method: protocol.CallTool,
		Params: json.RawMessage(`{"name":"echo","arguments":{"text":"own","steps":2},"_meta":{"progressToken":7}}`),
		Say:    func(e session.Event) { said = append(said, e.Method+string(e.Params)) }})
	if err != nil || !strings.Contains(string(r.Result), "own") || len(said) != 2 || !strings.Contains(said[0], `"progressToken":7`) {
		t.Errorf("%s %v, got the messages %q", r.Result, err, said)
	}
}

// openOwn opens a client's own session with a server.
func openOwn(ctx context.Context, sv *Server) (transport.Link, error) {
	ctx, cancel := context.WithTimeout(ctx, sv.Spec.ConnectTimeLimit())
	defer cancel()
	place, err := sv.WaitStartSlot(ctx)
	if err != nil {
		return nil, err
	}
	defer place.Release(false)
	l, err := sv.OpenClientLink(sv.ReportReceiver(), place)
	if err != nil {
		return nil, err
	}
	_, err = l.Do(ctx, &session.Request{ID: json.RawMessage("1"), Method: protocol.Initialize,
		Params: json.RawMessage(`{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}`)})
	if err != nil {
		l.Stop(sv.StopNowSignal())
		return nil, err
	}
	l.MarkStartComplete()
	l.SetVersion(protocol.Legacy)
	return l, l.NotifyServer(ctx, protocol.Initialized, nil)
}

// oldServer is a misbehaving server of the HTTP+SSE transport. Its stream begins with begin. take receives each message
// and may send something.
type oldServer struct {
	begin  string
	status int // of the responses to POST; 0 means 202
	take   func(m *wirejson.Message, say func(string))

	mu    sync.Mutex
	posts []string // paths
}

func (s *oldServer) serve(t *testing.T) string {
	streams := make(chan func(string), 1)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /sse", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusMethodNotAllowed) })
	mux.HandleFunc("GET /sse", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		out := make(chan string, 100)
		select {
		case <-streams: // the stream of the previous connection
		default:
		}
		streams <- func(text string) { out <- text }
		_, _ = io.WriteString(w, s.begin)
		for {
			w.(http.Flusher).Flush()
			select {
			case <-r.Context().Done():
				return
			case text := <-out:
				if text == "" {
					return
				}
				_, _ = io.WriteString(w, text)
			}
		}
	})
	mux.HandleFunc("POST /messages", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.posts = append(s.posts, r.URL.String())
		s.mu.Unlock()
		m, err := wirejson.ParseServerMessage(bytes.Clone(body))
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		say := <-streams
		streams <- say
		goodAnswer(&m, say)
		if s.take != nil {
			s.take(&m, say)
		}
		w.WriteHeader(max(s.status, http.StatusAccepted))
	})
	h := httptest.NewServer(mux)
	t.Cleanup(h.Close)
	return h.URL + "/sse"
}

// goodAnswer answers as a conforming server.
func goodAnswer(m *wirejson.Message, say func(string)) {
	event := func(result string) {
		say("event: message\ndata: " + string(wirejson.AppendResult(nil, m.ID, json.RawMessage(result))) + "\n\n")
	}
	switch m.Method {
	case protocol.Initialize:
		event(`{"protocolVersion":"2024-11-05","capabilities":{"tools":{}},"serverInfo":{"name":"old","version":"1"}}`)
	case protocol.ListTools:
		event(`{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}`)
	case protocol.Ping:
		event(`{}`)
	}
}

const goodBegin = "event: endpoint\ndata: /messages?id=1\n\n"

func TestOldServersThatMisbehave(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ begin, want string }{
		"another origin":   {"event: endpoint\ndata: http://127.0.0.1:1/messages\n\n", "another origin"},
		"another scheme":   {"event: endpoint\ndata: file:///etc/passwd\n\n", "another origin"},
		"no endpoint":      {"data: {}\n\n", "is not the endpoint for messages"},
		"nothing":          {"event: endpoint\ndata: \n\n", "not a URL"},
		"a long endpoint":  {"event: endpoint\ndata: /" + strings.Repeat("x", (8<<10)) + "\n\n", "longer than"},
		"a header in it":   {"event: endpoint\ndata: /x\x7f\x01\n\n", "not a URL"},
		"no end of events": {"event: endpoint\ndata: " + strings.Repeat("x", 2<<20), "limit"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &oldServer{begin: c.begin}
			url := s.serve(t)
			f := newFixture(t, func(o *Options) { o.MaxMessage = 1 << 20 })
			f.ApplySpecs([]Spec{{Name: "old", Transport: SSE, URL: url}})
			_, err := f.call("old", "t", "{}")
			if p := wantCode(t, err, problem.ServerUnavailable); !strings.Contains(p.Message, c.want) {
				t.Errorf("problem %v", p)
			}
			if len(s.posts) != 0 {
				t.Errorf("posts to %v", s.posts)
			}
		})
	}
}

func TestOldServersPingIsAnsweredAndChangesAreSeen(t *testing.T) {
	t.Parallel()
	ponged := make(chan struct{}, 1)
	s := &oldServer{begin: goodBegin, take: func(m *wirejson.Message, say func(string)) {
		switch {
		case m.Method == protocol.CallTool:
			say("event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":\"p\",\"method\":\"ping\"}\n\n")
			say("event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n")
			say(": a comment\n\nevent: other\ndata: nothing\n\n")
			say("event: message\ndata: " + string(wirejson.AppendResult(nil, m.ID, json.RawMessage(`{"content":[]}`))) + "\n\n")
		case m.Method == "" && string(m.ID) == `"p"`:
			ponged <- struct{}{}
		}
	}}
	url := s.serve(t) // stops after the Set
	f := newFixture(t)
	f.ApplySpecs([]Spec{{Name: "old", Transport: SSE, URL: url}})
	f.must("old", "t", "{}")
	select {
	case <-ponged:
	case <-time.After(patience):
		t.Error("the ping was not answered")
	}
	f.until(t, "the tools are listed again", func() bool { return len(f.lists["old"]) >= 2 })
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.ContainsFunc(s.posts, func(p string) bool { return p != "/messages?id=1" }) {
		t.Errorf("posts to %v", s.posts)
	}
}

func TestOldServerThatDropsItsStream(t *testing.T) {
	t.Parallel()
	s := &oldServer{begin: goodBegin, take: func(m *wirejson.Message, say func(string)) {
		if m.Method == protocol.CallTool {
			say("")
		}
	}}
	url := s.serve(t) // stops after the Set
	f := newFixture(t)
	f.ApplySpecs([]Spec{{Name: "old", Transport: SSE, URL: url}})
	_, err := f.call("old", "t", "{}")
	if p := wantCode(t, err, problem.UpstreamError); !strings.Contains(p.Hint, "may have been carried out") {
		t.Errorf("problem %v, %s", p, p.Hint)
	}
	f.untilReady(t, "old", 1)
}

// A server may read two posts at once. A cancellation that it reads before the request would have no effect.
func TestCancellationFollowsTheRequestOverSSE(t *testing.T) {
	t.Parallel()
	arrived, release, cancelled := make(chan struct{}), make(chan struct{}), make(chan struct{}, 1)
	s := &oldServer{begin: goodBegin, take: func(m *wirejson.Message, _ func(string)) {
		switch m.Method {
		case protocol.CallTool:
			arrived <- struct{}{}
			<-release
		case protocol.Cancelled:
			cancelled <- struct{}{}
		}
	}}
	url := s.serve(t)
	f := newFixture(t)
	f.ApplySpecs([]Spec{{Name: "old", Transport: SSE, URL: url}})
	f.untilReady(t, "old", 0)
	for {
		ctx, cancel := context.WithCancel(t.Context())
		var since time.Time
		go func() {
			<-arrived
			since = time.Now()
			cancel()
		}()
		_, err := f.Call(ctx, "old", Call{Tool: "t", Arguments: json.RawMessage("{}")})
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("error is %v", err)
		}
		early := false
		select {
		case <-cancelled:
			early = true
		case <-time.After(100 * time.Millisecond):
		}
		release <- struct{}{}
		if !early {
			select {
			case <-cancelled:
			case <-time.After(patience):
				t.Fatal("the server got no cancellation")
			}
		}
		if time.Since(since) > 500*time.Millisecond {
			continue // after a second, the post is ended
		}
		if early {
			t.Error("the cancellation came while the request was being posted")
		}
		return
	}
}

// The HTTP+SSE transport is tried only after the response of a server that may use it.
func TestFallbackToOlderTransport(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status int
		try    bool
		gets   int64
	}{
		{http.StatusMethodNotAllowed, true, 1}, {http.StatusNotFound, true, 1}, {http.StatusBadRequest, true, 1},
		{http.StatusMethodNotAllowed, false, 0}, {http.StatusForbidden, true, 0}, {http.StatusInternalServerError, true, 0},
	} {
		t.Run(fmt.Sprint(c.status, c.try), func(t *testing.T) {
			t.Parallel()
			var gets atomic.Int64
			h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet {
					gets.Add(1)
					w.WriteHeader(http.StatusNotFound)
					return
				}
				w.WriteHeader(c.status)
			})
			f := newFixture(t)
			f.ApplySpecs([]Spec{{Name: "s", Transport: HTTP, TrySSE: c.try, URL: mcptest.Serve(t, h).URL}})
			_, err := f.call("s", "t", "{}")
			p := problem.From(err)
			if (gets.Load() > 0) != (c.gets > 0) {
				t.Errorf("%d streams were requested", gets.Load())
			}
			if want := fmt.Sprint(c.status); !strings.Contains(p.Message, want) {
				t.Errorf("the problem does not say %s: %v", want, p)
			}
		})
	}
}
