//go:build unix

package upstream

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/testutil/mcptest"
)

// forgetful is a server over HTTP that can forget its sessions. It answers a request in a forgotten session with
// answer. If late is set, it runs a call before it answers.
type forgetful struct {
	*mcptest.Server
	answer func(w http.ResponseWriter, id json.RawMessage)
	runs   atomic.Int32 // runs of the tool
	broken atomic.Bool  // it has forgotten its current sessions
	late   bool         // it detects the forgotten session only after it has run the call
	known  atomic.Value // the one session that it has not forgotten
}

func newForgetful(late bool, answer func(http.ResponseWriter, json.RawMessage)) *forgetful {
	s := &forgetful{late: late, answer: answer}
	s.Server = mcptest.New(mcptest.Options{NoStream: true}, mcptest.Tool{Definition: mcptest.ToolDefinition("x"), Handle: func(*mcptest.Call) (json.RawMessage, error) {
		s.runs.Add(1)
		return json.RawMessage(`{"content":[]}`), nil
	}})
	s.known.Store("")
	return s
}

func (s *forgetful) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	m, err := wirejson.ParseServerMessage(body)
	if err != nil || m.Method == "initialize" || m.Method == "server/discover" {
		s.broken.Store(false)
	}
	if !s.broken.Load() {
		s.Server.ServeHTTP(w, r)
		return
	}
	if s.late && m.Method == "tools/call" {
		s.runs.Add(1)
	}
	s.answer(w, m.ID)
}

func status(code int, body string) func(http.ResponseWriter, json.RawMessage) {
	return func(w http.ResponseWriter, id json.RawMessage) {
		if strings.HasPrefix(body, "{") {
			w.Header().Set("Content-Type", "application/json")
		} else {
			w.Header().Set("Content-Type", "text/plain")
		}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, strings.ReplaceAll(body, "ID", string(id)))
	}
}

// TestForgottenSession checks that MCPProxy opens one new session for each kind of answer with which a server rejects a
// forgotten session. It sends the call again only if the server cannot have run it.
func TestForgottenSession(t *testing.T) {
	t.Parallel()
	rpc := func(id, code, message string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"error":{"code":` + code + `,"message":"` + message + `"}}`
	}
	for name, c := range map[string]struct {
		answer func(http.ResponseWriter, json.RawMessage)
		late   bool
		again  bool // the call is sent again
	}{
		"400 and an error":          {status(400, rpc("null", "-32600", "Session not found")), false, true},
		"400 and the id":            {status(400, rpc("ID", "-32600", "Session not found")), false, true},
		"400 and text":              {status(400, "Session not found"), false, true},
		"400 and nothing":           {status(400, ""), false, true},
		"401":                       {status(401, "no such session"), false, true},
		"403":                       {status(403, "who are you?"), false, true},
		"404 and text":              {status(404, "not found"), false, true},
		"409":                       {status(409, rpc("null", "-32000", "Conflict")), false, true},
		"410":                       {status(410, ""), false, true},
		"422":                       {status(422, `{"detail":"session"}`), false, true},
		"200 and -32001":            {status(200, rpc("ID", "-32001", "Session not found")), false, true},
		"200, -32001, no id":        {status(200, rpc("null", "-32001", "Session not found")), false, true},
		"200, -32602":               {status(200, rpc("ID", "-32602", "Received request before initialization was complete")), false, true},
		"200 and an event":          {events(rpc("ID", "-32001", "Session expired")), false, true},
		"200 and another error":     {status(200, rpc("ID", "-32000", "Connection closed")), true, false},
		"200 and an internal error": {status(200, rpc("ID", "-32603", "Internal error")), true, false},
		"200 and text":              {status(200, "session expired"), true, false},
		"200 and an own error":      {status(200, `{"error":"session not found"}`), true, false},
		"200, no message":           {status(200, `{}`), true, false},
		"202":                       {status(202, ""), true, false},
		"500":                       {status(500, "Error: session not found"), true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newForgetful(c.late, c.answer)
			h := mcptest.Serve(t, s)
			f := newFixture(t)
			f.ApplySpecs([]Spec{{Name: "s", Transport: HTTP, URL: h.URL}})
			f.must("s", "x", "{}")
			s.broken.Store(true)
			r, err := f.call("s", "x", "{}")
			if worked := err == nil && r.Error == nil; worked != c.again {
				t.Errorf("the first call in the forgotten session: %v %v", r.Error, err)
			}
			f.untilReady(t, "s", 1)
			f.must("s", "x", "{}")
			want := int32(3)
			if n := s.runs.Load(); n != want {
				t.Errorf("the tool ran %d times, want %d", n, want)
			}
			if n := len(s.Received("initialize")); n != 2 {
				t.Errorf("%d handshakes", n)
			}
		})
	}
}

func events(message string) func(http.ResponseWriter, json.RawMessage) {
	return func(w http.ResponseWriter, id json.RawMessage) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: "+strings.ReplaceAll(message, "ID", string(id))+"\n\n")
	}
}

// TestFailingCallsAreNoForgottenSession checks that failing calls are not treated as a lost session if the server
// answers a ping. The call is sent once.
func TestFailingCallsAreNoForgottenSession(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(http.ResponseWriter, json.RawMessage){
		"400":    status(400, "the session with the bank was not found"),
		"410":    status(410, ""),
		"500":    status(500, ""),
		"-32001": status(200, `{"jsonrpc":"2.0","id":ID,"error":{"code":-32001,"message":"Session not found"}}`),
		"text":   status(200, "no session"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var runs atomic.Int32
			s := mcptest.New(mcptest.Options{NoStream: true}, mcptest.Tool{Definition: mcptest.ToolDefinition("x"), Handle: func(c *mcptest.Call) (json.RawMessage, error) {
				runs.Add(1)
				answer(c.HTTP, c.ID)
				return nil, mcptest.ErrNoAnswer
			}}, mcptest.Tool{Definition: mcptest.ToolDefinition("y")})
			f := newFixture(t)
			f.ApplySpecs([]Spec{httpSpec(t, "s", s)})
			if r, err := f.call("s", "x", "{}"); err == nil && r.Error == nil {
				t.Error("the call has worked")
			}
			f.must("s", "y", "{}")
			if runs.Load() != 1 || len(s.Received("initialize")) != 1 {
				t.Errorf("%d runs, %d handshakes", runs.Load(), len(s.Received("initialize")))
			}
		})
	}
}

// TestForgottenSessionOverSSE: a server with the HTTP+SSE transport refuses POST requests.
func TestForgottenSessionOverSSE(t *testing.T) {
	t.Parallel()
	for _, code := range []int{400, 401, 404, 410} {
		t.Run(http.StatusText(code), func(t *testing.T) {
			t.Parallel()
			var forgot atomic.Bool
			var streams, runs atomic.Int32
			s := &oldServer{begin: "event: ping\ndata: {}\n\n: hello\n\n" + goodBegin, take: func(m *wirejson.Message, say func(string)) {
				if m.Method == "tools/call" {
					runs.Add(1)
					say("event: message\ndata: " + string(wirejson.AppendResult(nil, m.ID, json.RawMessage(`{"content":[]}`))) + "\n\n")
				}
			}}
			front := frontOf(t, s.serve(t), func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method == http.MethodGet {
					streams.Add(1)
					forgot.Store(false)
				}
				if r.Method == http.MethodPost && forgot.Load() {
					http.Error(w, "Session not found", code)
					return true
				}
				return false
			})
			f := newFixture(t)
			f.ApplySpecs([]Spec{{Name: "old", Transport: SSE, URL: front}})
			f.must("old", "t", "{}")
			forgot.Store(true)
			f.must("old", "t", "{}")
			f.untilReady(t, "old", 1)
			if streams.Load() != 2 || runs.Load() != 2 {
				t.Errorf("%d streams, %d runs", streams.Load(), runs.Load())
			}
		})
	}
}

// TestLostCallIsNotRepeated: when one call finds out that the server has forgotten the session, another call in flight
// may have run. It is not sent again.
func TestLostCallIsNotRepeated(t *testing.T) {
	t.Parallel()
	var forgot atomic.Bool
	var runs atomic.Int32
	running := make(chan struct{}, 10)
	s := &oldServer{begin: goodBegin, take: func(m *wirejson.Message, say func(string)) {
		if m.Method == "tools/call" && strings.Contains(string(m.Params), "hang") {
			runs.Add(1)
			running <- struct{}{}
		} else if m.Method == "tools/call" {
			say("event: message\ndata: " + string(wirejson.AppendResult(nil, m.ID, json.RawMessage(`{"content":[]}`))) + "\n\n")
		}
	}}
	front := frontOf(t, s.serve(t), func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet {
			forgot.Store(false)
		}
		if r.Method == http.MethodPost && forgot.Load() {
			http.Error(w, "Session not found", 400)
			return true
		}
		return false
	})
	f := newFixture(t)
	f.ApplySpecs([]Spec{{Name: "old", Transport: SSE, URL: front}})
	lost := make(chan error, 1)
	go func() {
		_, err := f.call("old", "t", `{"hang":1}`)
		lost <- err
	}()
	<-running
	forgot.Store(true)
	f.must("old", "t", "{}")
	if p := wantCode(t, <-lost, problem.UpstreamError); !strings.Contains(p.Hint, "may have been carried out") || runs.Load() != 1 {
		t.Errorf("%v, %s, %d runs", p, p.Hint, runs.Load())
	}
}

// TestFailing: a server counts as failing if no call has succeeded for a minute.
func TestFailing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f callFailures
		bad := &wirejson.RPCError{Code: -32603}
		for _, c := range []struct {
			pause   time.Duration
			err     error
			changed bool
		}{
			{0, nil, false}, {0, bad, false}, {59 * time.Second, bad, false}, {time.Second, bad, true}, {time.Hour, bad, false},
			{0, nil, true}, {time.Hour, bad, false}, {30 * time.Second, nil, false}, {40 * time.Second, bad, false}, {59 * time.Second, bad, false},
		} {
			time.Sleep(c.pause)
			if got := f.recordCall(time.Now(), c.err); got != c.changed {
				t.Errorf("after %v, %v: changed %v", c.pause, c.err, got)
			}
		}
	})
}

// TestServerThatFailsEveryCall: the server is shown as failed, with the reason, and as ready again after the first
// successful call.
func TestServerThatFailsEveryCall(t *testing.T) {
	t.Parallel()
	var works atomic.Bool
	s := mcptest.New(mcptest.Options{}, mcptest.Tool{Definition: mcptest.ToolDefinition("x"), Handle: func(*mcptest.Call) (json.RawMessage, error) {
		if works.Load() {
			return json.RawMessage(`{"content":[]}`), nil
		}
		return nil, &wirejson.RPCError{Code: -32603, Message: "the database is away"}
	}})
	f := newFixture(t)
	f.ApplySpecs([]Spec{httpSpec(t, "s", s)})
	if r, err := f.call("s", "x", "{}"); err != nil || r.Error == nil {
		t.Fatalf("%v %v", r, err)
	}
	sv := f.find("s")
	sv.failing.mu.Lock()
	sv.failing.since = sv.failing.since.Add(-failingAfter)
	sv.failing.mu.Unlock()
	_, _ = f.call("s", "x", "{}")
	f.until(t, "it has failed", func() bool {
		st := f.last("s")
		return st.Phase == Failed && strings.Contains(st.LastError, "every call has failed") && strings.Contains(st.Failure.Said, "-32603")
	})
	works.Store(true)
	f.must("s", "x", "{}")
	f.untilReady(t, "s", 0)
	// Errors that the caller causes do not count against the server.
	wrong := session.Reply{Error: &wirejson.RPCError{Code: wirejson.CodeInvalidParams}}
	if got := serverFaultOf(t.Context(), wrong, nil); got != errInconclusive {
		t.Errorf("wrong parameters: %v", got)
	}
}
