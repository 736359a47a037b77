//go:build unix

package compat

import (
	"encoding/json"
	"fmt"
	"io"
	"mcpproxy/internal/problem"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/testutil/mcptest"
)

// modernServer supports only the modern protocol. Its tool requires input twice.
type modernServer struct {
	mu     sync.Mutex
	seen   []string // method, headers and params of each request
	listen chan string
}

func (s *modernServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	m, err := wirejson.ParseServerMessage(body)
	if r.Method != http.MethodPost || err != nil || r.Header.Get("Mcp-Protocol-Version") != mcp.Modern || r.Header.Get("Mcp-Method") != m.Method {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32022,"message":"Unsupported protocol version","data":{"supported":["2026-07-28"]}}}`)
		return
	}
	s.mu.Lock()
	s.seen = append(s.seen, m.Method+" "+r.Header.Get("Mcp-Name")+" "+r.Header.Get("Mcp-Param-Region")+" "+string(m.Params))
	s.mu.Unlock()
	meta := wirejson.Find(m.Params, "_meta")
	result := `{}`
	switch m.Method {
	case mcp.Discover:
		result = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"resources":{"subscribe":true}},"instructions":"be kind","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"new","version":"2"}}}`
	case mcp.ListTools:
		result = `{"resultType":"complete","tools":[{"name":"ask","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}}]}`
	case mcp.CallTool:
		result = s.call(m.Params)
	case mcp.Listen:
		w.Header().Set("Content-Type", "text/event-stream")
		for _, text := range []string{`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{}}}`,
			`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"x:` + string(m.ID[:1]) + `"}}`} {
			w.Write(wirejson.AppendSSEEvent(nil, "", []byte(text)))
			w.(http.Flusher).Flush()
		}
		select {
		case s.listen <- string(wirejson.Find(wirejson.Find(m.Params, "notifications"), "resourceSubscriptions")):
		default:
		}
		<-r.Context().Done()
		return
	}
	if level := wirejson.Find(meta, "io.modelcontextprotocol/logLevel"); level != nil {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Write(wirejson.AppendSSEEvent(nil, "", []byte(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":`+string(level)+`,"data":1}}`)))
		w.Write(wirejson.AppendSSEEvent(nil, "", wirejson.AppendResult(nil, m.ID, json.RawMessage(result))))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(wirejson.AppendResult(nil, m.ID, json.RawMessage(result)))
}

// call requires two inputs, then one more, and then answers.
func (s *modernServer) call(params json.RawMessage) string {
	state, _ := wirejson.String(wirejson.Find(params, "requestState"))
	given := wirejson.Find(params, "inputResponses")
	switch {
	case state == "" && wirejson.Find(wirejson.Find(params, "arguments"), "again") != nil:
		return `{"resultType":"input_required","requestState":"later"}`
	case state == "":
		return `{"resultType":"input_required","requestState":"one","inputRequests":{"b":{"method":"elicitation/create","params":{"message":"b"}},"a":{"method":"sampling/createMessage","params":{"big":9007199254740993}}}}`
	case state == "one" && string(given) == `{"a":{"got":"sampling/createMessage"},"b":{"got":"elicitation/create"}}`:
		return `{"resultType":"input_required","requestState":"two","inputRequests":{"c":{"method":"roots/list"}}}`
	case state == "two" && string(given) == `{"c":{"got":"roots/list"}}`:
		return `{"resultType":"complete","content":[],"n":9007199254740993}`
	}
	return `{"resultType":"complete","isError":true,"content":[]}`
}

// TestLegacyClientOnModernServer: features that the two protocols express differently are translated.
func TestLegacyClientOnModernServer(t *testing.T) {
	t.Parallel()
	s := &modernServer{listen: make(chan string, 4)}
	f := newFixture(t)
	f.ApplySpecs([]Spec{{Name: "s", Transport: HTTP, URL: mcptest.Serve(t, s).URL}})
	f.untilReady(t, "s", 0)
	c, a, err := f.Converse(t.Context(), "s", session.Request{ID: json.RawMessage("1"), Method: mcp.Initialize, Params: json.RawMessage(hello)})
	const greeting = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"resources":{"subscribe":true}},"serverInfo":{"name":"new","version":"2"},"instructions":"be kind"}`
	if err != nil || c == nil || string(a.Result) != greeting {
		t.Fatalf("%s %+v %v", a.Result, a.Error, err)
	}
	if err := c.NotifyServer(t.Context(), mcp.Initialized, nil); err != nil {
		t.Error(err)
	}
	relay := func(method, params string) Answer {
		a, err := f.Relay(t.Context(), "s", c, session.Request{ID: json.RawMessage("2"), Method: method, Params: json.RawMessage(params)})
		if err != nil {
			t.Errorf("%s: %v", method, err)
		}
		return a
	}
	for _, ok := range [][2]string{{mcp.Ping, `{}`}, {"logging/setLevel", `{"level":"debug"}`}, {"resources/subscribe", `{"uri":"x:1"}`}} {
		if a := relay(ok[0], ok[1]); string(a.Result) != "{}" {
			t.Errorf("%s: %s %v", ok[0], a.Result, a.Error)
		}
	}
	for _, bad := range [][2]string{{"logging/setLevel", `{"level":"loud"}`}, {"resources/subscribe", `{}`}, {mcp.Discover, `{}`}} {
		if a := relay(bad[0], bad[1]); a.Error == nil {
			t.Errorf("%s %s: %s", bad[0], bad[1], a.Result)
		}
	}
	var events []string
	r := session.Request{ID: json.RawMessage("3"), Method: mcp.CallTool, Params: json.RawMessage(`{"name":"ask","arguments":{"region":"é"}}`)}
	r.Say = func(e session.Event) {
		events = append(events, e.Method+" "+string(e.Params))
		if e.ID != nil {
			go c.AnswerServerQuestion(t.Context(), slices.Clone(e.ID), session.Reply{Result: json.RawMessage(`{"got":"` + e.Method + `"}`)})
		}
	}
	call := func() (session.Reply, error) {
		return f.Call(t.Context(), "s", Call{Tool: "ask", Passed: &Passed{Request: r, Session: c},
			Listed: json.RawMessage(`{"name":"ask","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}}`)})
	}
	reply, err := call()
	if err != nil || string(reply.Result) != `{"resultType":"complete","content":[],"n":9007199254740993}` {
		t.Errorf("%s %v", reply.Result, err)
	}
	const log = `notifications/message {"level":"debug","data":1}`
	want := []string{log, `sampling/createMessage {"big":9007199254740993}`, `elicitation/create {"message":"b"}`, log, "roots/list ", log}
	if !slices.Equal(events, want) {
		t.Errorf("events\n%s", strings.Join(events, "\n"))
	}
	r.Say = nil
	if reply, err := call(); err != nil || reply.Error == nil || !strings.Contains(reply.Error.Message, "has no event stream") {
		t.Errorf("a client that cannot be asked: %+v %v", reply, err)
	}
	s.mu.Lock()
	calls := slices.DeleteFunc(slices.Clone(s.seen), func(m string) bool { return !strings.HasPrefix(m, "tools/call ask =?base64?w6k=?= ") })
	s.mu.Unlock()
	if len(calls) != 4 || !strings.Contains(calls[0], `"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}},"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/logLevel":"debug"`) {
		t.Errorf("calls\n%s", strings.Join(calls, "\n"))
	}
	told := make(chan string, 10)
	over := make(chan error, 1)
	go func() { over <- c.Listen(t.Context(), func(e session.Event) { told <- e.Method }, func() {}) }()
	if got := <-told; got != "notifications/resources/updated" || <-s.listen != `["x:1"]` {
		t.Errorf("told %s", got)
	}
	relay("resources/subscribe", `{"uri":"x:2"}`)
	if got := <-s.listen; got != `["x:1","x:2"]` {
		t.Errorf("subscribed to %s", got)
	}
	c.Close()
	if err := <-over; err == nil {
		t.Error("the stream ended without an error")
	}
}

// TestLockBetweenRounds: a tool that is locked while MCPProxy asks the client, or between two rounds that the server
// requires, is not called again.
func TestLockBetweenRounds(t *testing.T) {
	t.Parallel()
	for name, arguments := range map[string]string{"asked": `{}`, "told to come again": `{"again":true}`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for try := 1; !lockedBetweenRounds(t, arguments); try++ {
				if try == 50 {
					t.Fatal("the tool was never locked within the pause that the server gets")
				}
			}
		})
	}
}

// lockedBetweenRounds locks a tool between two rounds of a call. It reports whether the lock came in time: on a busy
// machine the pause before the second round may already be over.
func lockedBetweenRounds(t *testing.T, arguments string) bool {
	s := &modernServer{listen: make(chan string, 4)}
	f := newFixture(t)
	f.ApplySpecs([]Spec{{Name: "s", Transport: HTTP, URL: mcptest.Serve(t, s).URL}})
	f.untilReady(t, "s", 0)
	c := f.converse(t, "s")
	calls := func() (n int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		return count(s.seen, mcp.CallTool+" ")
	}
	var locked, late atomic.Bool
	r := session.Request{ID: json.RawMessage("3"), Method: mcp.CallTool, Params: json.RawMessage(`{"name":"ask","arguments":` + arguments + `}`)}
	r.Say = func(e session.Event) {
		if e.ID != nil {
			locked.Store(true)
			go c.AnswerServerQuestion(t.Context(), slices.Clone(e.ID), session.Reply{Result: json.RawMessage(`{"got":"` + e.Method + `"}`)})
		}
	}
	var locking sync.WaitGroup
	if arguments != `{}` {
		locking.Go(func() {
			none := time.Now()
			for now := none; calls() == 0 && t.Context().Err() == nil; now = time.Now() {
				none = now
				time.Sleep(time.Millisecond)
			}
			time.Sleep(minRetryDelay / 3)
			locked.Store(true)
			late.Store(time.Since(none) > minRetryDelay)
		})
	}
	_, err := f.Call(t.Context(), "s", Call{Tool: "ask", Passed: &Passed{Request: r, Session: c}, Check: func() error {
		if locked.Load() {
			return problem.New(problem.ToolLocked, "it is locked", "")
		}
		return nil
	}})
	if locking.Wait(); late.Load() {
		return false
	}
	wantCode(t, err, problem.ToolLocked)
	if n := calls(); n != 1 {
		t.Errorf("it was called %d times", n)
	}
	return true
}
