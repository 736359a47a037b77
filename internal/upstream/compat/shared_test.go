//go:build unix

package compat

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mcpproxy/internal/upstream"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/testutil/mcptest"
)

// club is a server whose session many clients share. Its tools:
//
//	busy n        logs n, says progress n, logs n again, answers n
//	seen method   answers with the params of all such messages that have come
//	say method    sends a notification, with the params that are the argument params
//	hang          never answers
//	late          answers after release, also when it was cancelled
//	release       has late answer
//	ask           asks the client, answers with the code of its refusal
//	crash, pid    as in the zoo
func club() *mcptest.Server { return clubOf(mcptest.Options{}) }

func clubOf(opt mcptest.Options) *mcptest.Server {
	if opt.Capabilities == "" {
		opt.Capabilities = `{"tools":{"listChanged":true},"logging":{},"resources":{"subscribe":true,"listChanged":true},"tasks":{"list":{}},"x":{"big":9007199254740993}}`
	}
	opt.Other = func(method string, c *mcptest.Call) (json.RawMessage, error) {
		switch method {
		case mcp.Subscribe, mcp.Unsubscribe, mcp.SetLevel:
			if strings.Contains(string(c.Params), "refused") {
				return nil, &wirejson.RPCError{Code: -32002, Message: "no such resource"}
			}
			return json.RawMessage("{}"), nil
		}
		return nil, &wirejson.RPCError{Code: wirejson.CodeMethodNotFound, Message: "Method not found: " + method}
	}
	release := make(chan struct{}, 1)
	tool := func(name string, handle func(*mcptest.Call) (json.RawMessage, error)) mcptest.Tool {
		return mcptest.Tool{Definition: mcptest.ToolDefinition(name), Handle: handle}
	}
	text := func(c *mcptest.Call, name string) string {
		s, _ := wirejson.String(wirejson.Find(c.Arguments, name))
		return s
	}
	zoo := slices.DeleteFunc(mcptest.SampleTools(), func(t mcptest.Tool) bool {
		return !slices.Contains([]string{mcptest.ToolDefinition("crash"), mcptest.ToolDefinition("pid"), mcptest.ToolDefinition("hang")}, t.Definition)
	})
	return mcptest.New(opt, append(zoo,
		tool("busy", func(c *mcptest.Call) (json.RawMessage, error) {
			n := c.IntArgument("n", -1)
			c.SendLogMessage(fmt.Sprint("call ", n))
			c.SendProgress(n)
			c.SendLogMessage(fmt.Sprint("call ", n))
			return fmt.Appendf(nil, `{"content":[{"type":"text","text":"call %d"}]}`, n), nil
		}),
		tool("seen", func(c *mcptest.Call) (json.RawMessage, error) {
			var all []json.RawMessage
			for _, s := range c.Server.Received(text(c, "method")) {
				all = append(all, s.Params)
			}
			b, err := json.Marshal(all)
			return fmt.Appendf(nil, `{"content":[],"seen":%s}`, b), err
		}),
		tool("say", func(c *mcptest.Call) (json.RawMessage, error) {
			c.Server.Broadcast(text(c, "method"), slices.Clone(wirejson.Find(c.Arguments, "params")))
			return json.RawMessage(`{"content":[]}`), nil
		}),
		tool("late", func(*mcptest.Call) (json.RawMessage, error) {
			<-release
			return json.RawMessage(`{"content":[]}`), nil
		}),
		tool("release", func(*mcptest.Call) (json.RawMessage, error) {
			release <- struct{}{}
			return json.RawMessage(`{"content":[]}`), nil
		}),
		tool("ask", func(c *mcptest.Call) (json.RawMessage, error) {
			answer, err := c.SendRequest("elicitation/create", json.RawMessage(`{"message":"?"}`))
			if err != nil {
				return nil, err
			}
			if answer.Error == nil {
				return nil, errors.New("it was answered")
			}
			return fmt.Appendf(nil, `{"content":[],"code":%d}`, answer.Error.Code), nil
		}),
	)...)
}

// clubs are specs of the club over every transport that has sessions.
func clubs(t testing.TB) []Spec {
	pipe, web := stdioSpec(t, "pipe", "club"), httpSpec(t, "http", club())
	pipe.Shared, web.Shared = true, true
	return []Spec{pipe, web}
}

// member is a client that shares the session.
type member struct {
	f      *fixture
	server string
	c      *Session

	mu    sync.Mutex
	heard []string // on its stream
	told  chan struct{}
	stop  context.CancelFunc
	done  chan struct{}
}

// join opens a session and its stream.
func (f *fixture) join(t testing.TB, server string) *member {
	t.Helper()
	m := &member{f: f, server: server, c: f.converse(t, server), told: make(chan struct{}, 1), done: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	m.stop = cancel
	opened := make(chan struct{})
	go func() {
		defer close(m.done)
		_ = m.c.Listen(ctx, func(e session.Event) {
			m.mu.Lock()
			m.heard = append(m.heard, string(e.AppendMessage(nil)))
			m.mu.Unlock()
			select {
			case m.told <- struct{}{}:
			default:
			}
		}, func() { close(opened) })
	}()
	<-opened
	t.Cleanup(func() { cancel(); <-m.done })
	return m
}

// untilHears waits until the client has received, on its stream, a message that ok accepts.
func (m *member) untilHears(t testing.TB, what string, ok func(heard []string) bool) {
	t.Helper()
	limit := time.After(patience)
	for {
		m.mu.Lock()
		heard := slices.Clone(m.heard)
		m.mu.Unlock()
		if ok(heard) {
			return
		}
		select {
		case <-m.told:
		case <-limit:
			t.Fatalf("waited too long for: %s; heard %q", what, heard)
		}
	}
}

func count(heard []string, part string) (n int) {
	for _, h := range heard {
		if strings.Contains(h, part) {
			n++
		}
	}
	return n
}

// use makes a call and returns its result and the events before it.
func (m *member) use(ctx context.Context, tool, arguments string) (result string, events []string, err error) {
	params := fmt.Sprintf(`{"name":%q,"arguments":%s,"_meta":{"progressToken":"same"}}`, tool, arguments)
	reply, err := m.f.Call(ctx, m.server, Call{Tool: tool, Passed: &Passed{Session: m.c, Request: session.Request{ID: json.RawMessage("1"),
		Method: mcp.CallTool, Params: json.RawMessage(params), Say: func(e session.Event) { events = append(events, string(e.AppendMessage(nil))) }}}})
	if err == nil && reply.Error != nil {
		err = reply.Error
	}
	return string(reply.Result), events, err
}

func (m *member) mustUse(t testing.TB, tool, arguments string) (result string, events []string) {
	t.Helper()
	result, events, err := m.use(t.Context(), tool, arguments)
	if err != nil {
		t.Fatalf("%s %s: %v", m.server, tool, err)
	}
	return result, events
}

// seen returns the params of the messages with a method that the server has received.
func (m *member) seen(t testing.TB, method string) []string {
	t.Helper()
	result, _ := m.mustUse(t, "seen", `{"method":"`+method+`"}`)
	var all []string
	_ = wirejson.EachElement(wirejson.Find([]byte(result), "seen"), func(raw []byte) error {
		all = append(all, string(raw))
		return nil
	})
	return all
}

func (m *member) untilSeen(t testing.TB, method string, want ...string) {
	t.Helper()
	limit, pause := time.Now().Add(patience), time.NewTicker(5*time.Millisecond)
	defer pause.Stop()
	for got := m.seen(t, method); !slices.Equal(got, want); got = m.seen(t, method) {
		if time.Now().After(limit) {
			t.Fatalf("%s: the server has got %s %q, want %q", m.server, method, got, want)
		}
		<-pause.C
	}
}

func (m *member) request(t testing.TB, method, params string) Answer {
	t.Helper()
	a, err := m.f.Relay(t.Context(), m.server, m.c, session.Request{ID: json.RawMessage(`"r"`), Method: method, Params: json.RawMessage(params)})
	if err != nil {
		t.Fatalf("%s %s: %v", m.server, method, err)
	}
	return a
}

func (m *member) subscribe(t testing.TB, method, uri string) {
	t.Helper()
	if a := m.request(t, method, `{"uri":"`+uri+`"}`); string(a.Result) != "{}" {
		t.Fatalf("%s %s: %+v", method, uri, a)
	}
}

// TestSharedServerRunsOnce: many clients of both protocols with the same ids and tokens share one session of one process.
// Each gets only its own messages.
func TestSharedServerRunsOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.ApplySpecs(clubs(t))
	for _, server := range []string{"pipe", "http"} {
		f.untilReady(t, server, 0)
		const clients, calls = 24, 12
		var wg sync.WaitGroup
		check := func(n int, result string, events []string, err error) {
			if err != nil || !strings.Contains(result, fmt.Sprintf(`"call %d"`, n)) {
				t.Errorf("%s %d: %s %v", server, n, result, err)
			}
			progress := 0
			for _, e := range events {
				switch {
				case strings.Contains(e, mcp.Progress) && strings.Contains(e, fmt.Sprintf(`"progressToken":"same","progress":%d}`, n)):
					progress++
				case !strings.Contains(e, mcp.LogMessage) || !strings.Contains(e, fmt.Sprintf(`"call %d"`, n)):
					t.Errorf("%s %d got %s", server, n, e)
				}
			}
			if logs := len(events) - progress; progress != 1 || server == "http" && logs != 2 {
				t.Errorf("%s %d got %q", server, n, events)
			}
		}
		for client := range clients {
			if client%3 == 0 {
				wg.Go(func() {
					for i := range calls {
						n := client*100 + i
						var events []string
						params := fmt.Sprintf(`{"name":"busy","arguments":{"n":%d},"_meta":{"progressToken":"same","io.modelcontextprotocol/protocolVersion":"2026-07-28",`+
							`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}},"io.modelcontextprotocol/logLevel":"info"}}`, n)
						reply, err := f.Call(t.Context(), server, Call{Tool: "busy", Passed: &Passed{Request: session.Request{ID: json.RawMessage("1"), Caller: named(fmt.Sprint(client)),
							Method: mcp.CallTool, Params: json.RawMessage(params), Say: func(e session.Event) { events = append(events, string(e.AppendMessage(nil))) }}}})
						check(n, string(reply.Result), events, err)
					}
				})
				continue
			}
			m := f.join(t, server)
			for lane := range 2 {
				wg.Go(func() {
					for i := range calls {
						n := client*100 + lane*50 + i
						result, events, err := m.use(t.Context(), "busy", fmt.Sprintf(`{"n":%d}`, n))
						check(n, result, events, err)
					}
				})
			}
		}
		wg.Wait()
		last := f.join(t, server)
		if got := last.seen(t, mcp.Initialize); len(got) != 1 {
			t.Errorf("%s: %d times initialize", server, len(got))
		}
		if server == "pipe" {
			s, _ := f.State(server)
			if result, _ := last.mustUse(t, "pid", "{}"); !strings.Contains(result, fmt.Sprintf(`"%d"`, s.PID)) {
				t.Errorf("another process than %d: %s", s.PID, result)
			}
		}
	}
}

// TestSharedInitialize: a client gets the server's initialize result, in the older version of the two, without features that
// a shared session cannot have.
func TestSharedInitialize(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	specs := clubs(t)
	old := httpSpec(t, "old", clubOf(mcptest.Options{Protocol: "2025-03-26", Instructions: "be kind"}))
	old.Shared = true
	f.ApplySpecs(append(specs, old))
	const rest = `"serverInfo":{"name":"fake","version":"1"},"instructions":`
	for _, c := range []struct{ server, asked, want string }{
		{"pipe", "2025-11-25", `"protocolVersion":"2025-11-25"`},
		{"http", "2024-11-05", `"protocolVersion":"2024-11-05"`},
		{"http", "9999-01-01", `"protocolVersion":"2025-11-25"`},
		{"old", "2025-11-25", `"protocolVersion":"2025-03-26"`},
	} {
		f.untilReady(t, c.server, 0)
		opened, a, err := f.Converse(t.Context(), c.server, session.Request{ID: json.RawMessage("1"), Method: mcp.Initialize,
			Params: json.RawMessage(`{"protocolVersion":"` + c.asked + `","capabilities":{"sampling":{}},"clientInfo":{"name":"c","version":"1"}}`)})
		if err != nil {
			t.Fatalf("%s: %v", c.server, err)
		}
		for _, want := range []string{c.want, rest, `"x":{"big":9007199254740993}`, `"subscribe":true`} {
			if !strings.Contains(string(a.Result), want) {
				t.Errorf("%s %s: no %s in %s", c.server, c.asked, want, a.Result)
			}
		}
		if strings.Contains(string(a.Result), "tasks") {
			t.Errorf("%s: %s", c.server, a.Result)
		}
		m := &member{f: f, server: c.server, c: opened}
		if a := m.request(t, "tasks/list", "{}"); a.Error == nil || a.Error.Code != wirejson.CodeMethodNotFound || !strings.Contains(a.Error.Message, "share") {
			t.Errorf("tasks: %+v", a)
		}
		call := session.Request{ID: json.RawMessage("1"), Method: mcp.CallTool, Params: json.RawMessage(`{"name":"busy","task":{"ttl":1},"arguments":{"n":1}}`)}
		if _, err := f.Call(t.Context(), c.server, Call{Tool: "busy", Passed: &Passed{Session: opened, Request: call}}); err != nil {
			t.Error(err)
		}
		if got := m.seen(t, mcp.CallTool); got[0] != `{"name":"busy","arguments":{"n":1}}` {
			t.Errorf("%s: a call as a task: %s", c.server, got[0])
		}
		if result, _ := m.mustUse(t, "ask", "{}"); !strings.Contains(result, fmt.Sprintf(`"code":%d`, wirejson.CodeMethodNotFound)) {
			t.Errorf("a question: %s", result)
		}
		if a := m.request(t, "odd/method", "{}"); a.Error == nil || a.Error.Code != wirejson.CodeMethodNotFound || strings.Contains(a.Error.Message, "share") {
			t.Errorf("what we do not know: %+v", a)
		}
		if a := m.request(t, mcp.Ping, "{}"); string(a.Result) != "{}" {
			t.Errorf("ping: %+v", a)
		}
	}
}

// TestSharedTokenSpelling: a client's token never reaches the server, where it might be another client's, in any spelling of
// its member.
func TestSharedTokenSpelling(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.ApplySpecs(clubs(t))
	for _, server := range []string{"pipe", "http"} {
		f.untilReady(t, server, 0)
		m := f.join(t, server)
		var progress []string
		_, err := f.Call(t.Context(), server, Call{Tool: "busy", Passed: &Passed{Session: m.c, Request: session.Request{ID: json.RawMessage("1"), Method: mcp.CallTool,
			Params: json.RawMessage(`{"name":"busy","arguments":{"n":1},"_meta":{"progress\u0054oken":"mine"}}`), Say: func(e session.Event) {
				if e.Method == mcp.Progress {
					progress = append(progress, string(e.Params))
				}
			}}}})
		if err != nil || len(progress) != 1 || !strings.Contains(progress[0], `"progressToken":"mine"`) {
			t.Errorf("%s: %q %v", server, progress, err)
		}
		if got := m.seen(t, mcp.CallTool); strings.Contains(got[0], "mine") {
			t.Errorf("%s: the server got %s", server, got[0])
		}
	}
}

// TestQueuedMessagesAreStoredOnce: many clients without a stream queue the same messages, which are stored once.
func TestQueuedMessagesAreStoredOnce(t *testing.T) {
	sh := newSharedConnection(nil)
	a, b := newSharedClient(sh), newSharedClient(sh)
	sh.clients[a], sh.clients[b] = struct{}{}, struct{}{}
	heard := []byte(`{"_meta":{"n":1}}`)
	if !sh.deliverToClients(mcp.ToolsChanged, heard) {
		t.Error("there is no one")
	}
	copy(heard, "the reader's buffer has something else now")
	x, y := a.inbox.TakeAll()[0].Params, b.inbox.TakeAll()[0].Params
	if string(x) != `{"_meta":{"n":1}}` || &x[0] != &y[0] {
		t.Errorf("%s and %s", x, y)
	}
}

// TestSharedCancel: the server gets the cancellation with its own id, and only that call ends.
func TestSharedCancel(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.ApplySpecs(clubs(t))
	for _, server := range []string{"pipe", "http"} {
		f.untilReady(t, server, 0)
		a, b := f.join(t, server), f.join(t, server)
		cancelled, other := make(chan error, 1), make(chan error, 1)
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() { _, _, err := a.use(ctx, "hang", "{}"); cancelled <- err }()
		go func() { _, _, err := b.use(t.Context(), "late", "{}"); other <- err }()
		a.untilSeenCalls(t, 2)
		cancel(&session.ClientCancelledError{Params: json.RawMessage(`{"requestId":1,"reason":"enough"}`)})
		if err := <-cancelled; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", server, err)
		}
		a.untilSeenCount(t, mcp.Cancelled, 1)
		got := a.seen(t, mcp.Cancelled)[0]
		id, _ := wirejson.Int(wirejson.Find([]byte(got), "requestId"))
		if id < 2 || !strings.Contains(got, `"reason":"enough"`) {
			t.Errorf("%s: the server was told %s", server, got)
		}
		a.c.Close() // which takes nothing from the other one
		<-a.c.Done()
		b.mustUse(t, "release", "{}")
		if err := <-other; err != nil {
			t.Errorf("%s: the other call: %v", server, err)
		}
		if _, _, err := a.use(t.Context(), "pid", "{}"); !errors.Is(err, session.ErrEnded) {
			t.Errorf("%s: after the end: %v", server, err)
		}
		if _, err := f.Relay(t.Context(), server, a.c, session.Request{ID: json.RawMessage("1"), Method: mcp.Ping}); !errors.Is(err, session.ErrEnded) {
			t.Errorf("%s: after the end: %v", server, err)
		}
	}
}

// untilSeenCalls waits until so many calls of hang and late have come.
func (m *member) untilSeenCalls(t testing.TB, n int) {
	t.Helper()
	m.untilTrue(t, fmt.Sprint(n, " calls at the server"), func() bool {
		got := m.seen(t, mcp.CallTool)
		return count(got, `"hang"`)+count(got, `"late"`) == n
	})
}

func (m *member) untilSeenCount(t testing.TB, method string, n int) {
	t.Helper()
	m.untilTrue(t, fmt.Sprint(n, " times ", method), func() bool { return len(m.seen(t, method)) == n })
}

func (m *member) untilTrue(t testing.TB, what string, ok func() bool) {
	t.Helper()
	limit, pause := time.Now().Add(patience), time.NewTicker(5*time.Millisecond)
	defer pause.Stop()
	for !ok() {
		if time.Now().After(limit) {
			t.Fatalf("%s: waited too long for: %s", m.server, what)
		}
		<-pause.C
	}
}

// TestSharedLogMessagesAreNotGuessed: over stdio a log message belongs to the only call in flight, unless the server may still
// be working for another client.
func TestSharedLogMessagesAreNotGuessed(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.ApplySpecs(clubs(t)[:1])
	f.untilReady(t, "pipe", 0)
	a, b := f.join(t, "pipe"), f.join(t, "pipe")
	logs := func(m *member) int {
		_, events := m.mustUse(t, "busy", `{"n":1}`)
		return count(events, mcp.LogMessage)
	}
	if logs(a) != 2 || logs(b) != 2 {
		t.Error("the only call gets no messages")
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { _, _, err := a.use(ctx, "late", "{}"); done <- err }()
	a.untilSeenCalls(t, 1)
	if logs(a) != 0 || logs(b) != 0 {
		t.Error("a call gets messages although two are in flight")
	}
	cancel()
	<-done
	if n := logs(b); n != 0 {
		t.Errorf("%d messages while the server works for another caller", n)
	}
	if n := logs(a); n != 2 {
		t.Errorf("%d messages for the client for whom alone the server works", n)
	}
	b.mustUse(t, "release", "{}")
	b.untilTrue(t, "the server is done with the other call", func() bool { return logs(b) == 2 })
	tail, err := f.LogTail("pipe", 1000)
	var lines []string
	for _, l := range tail {
		lines = append(lines, l.String())
	}
	if err != nil || count(lines, "call 1") == 0 {
		t.Errorf("what was for no one is not in the log: %q %v", lines, err)
	}
}

// TestLogMessagesWithoutSessions checks that callers without a session receive no log messages, because MCPProxy cannot
// know whether they are the same client. A caller alone on the connection gets it.
func TestLogMessagesWithoutSessions(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.ApplySpecs([]Spec{stdioSpec(t, "pipe", "club")})
	f.untilReady(t, "pipe", 0)
	own := f.join(t, "pipe") // whose process is another one
	plain := func(ctx context.Context, tool string) (logs int, err error) {
		_, err = f.Call(ctx, "pipe", Call{Tool: tool, Notify: func(method string, _ json.RawMessage) {
			if method == mcp.LogMessage {
				logs++
			}
		}})
		return logs, err
	}
	calls := map[string]func(context.Context, string) (int, error){"plain": plain, "own": func(ctx context.Context, tool string) (int, error) {
		_, events, err := own.use(ctx, tool, "{}")
		return count(events, mcp.LogMessage), err
	}}
	for name, want := range map[string]int{"plain": 0, "own": 2} {
		call := calls[name]
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { _, err := call(ctx, "late"); done <- err }()
		own.untilTrue(t, "the call is under way", func() bool {
			if name == "own" {
				return own.c.own.Health().InFlight == 1
			}
			return strings.Contains(f.must("pipe", "seen", `{"method":"tools/call"}`), `"name":"late"`)
		})
		cancel()
		<-done
		if n, err := call(t.Context(), "busy"); n != want || err != nil {
			t.Errorf("%s: %d messages (%v), want %d", name, n, err, want)
		}
	}
	if _, err := plain(t.Context(), "release"); err != nil {
		t.Fatal(err)
	}
	own.untilTrue(t, "the server is done with the call that was given up", func() bool {
		n, err := plain(t.Context(), "busy")
		return n == 2 && err == nil
	})
}

// TestLogMessagesOfABrokenAnswer: a server whose response broke off may still be working on it, as after a cancelled call.
func TestLogMessagesOfABrokenAnswer(t *testing.T) {
	t.Parallel()
	s := club()
	f := newFixture(t)
	f.ApplySpecs([]Spec{{Name: "s", Transport: HTTP, Shared: true, URL: mcptest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || bytes.Contains(body, []byte(`"breaks":true`)) {
			w.Header().Set("Content-Type", "text/event-stream")
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		s.ServeHTTP(w, r)
	})).URL}})
	f.untilReady(t, "s", 0)
	a, b := f.join(t, "s"), f.join(t, "s")
	rounds := 0
	logs := func() int {
		var events []string
		done := make(chan error, 1)
		go func() {
			var err error
			_, events, err = b.use(t.Context(), "late", "{}")
			done <- err
		}()
		rounds++
		b.untilTrue(t, "the call is under way", func() bool {
			late := 0
			for _, seen := range s.Received(mcp.CallTool) {
				late += count([]string{string(seen.Params)}, `"late"`)
			}
			return late == rounds
		})
		s.Broadcast(mcp.LogMessage, json.RawMessage(`{"level":"info","data":"whose?"}`))
		s.Broadcast(mcp.ResourcesChanged, nil)
		b.untilHears(t, "what was said last", func(heard []string) bool { return count(heard, mcp.ResourcesChanged) == rounds })
		b.mustUse(t, "release", "{}")
		if err := <-done; err != nil {
			t.Error(err)
		}
		return count(events, mcp.LogMessage)
	}
	if n := logs(); n != 1 {
		t.Errorf("%d messages for the only call", n)
	}
	if _, _, err := a.use(t.Context(), "busy", `{"breaks":true}`); err == nil {
		t.Error("the answer has not broken off")
	}
	if n := logs(); n != 0 {
		t.Errorf("%d messages while the server may be at work for another caller", n)
	}
}

// TestSharedLevels: the server gets the most verbose requested level, and each client gets its own.
func TestSharedLevels(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.ApplySpecs(clubs(t))
	for _, server := range []string{"pipe", "http"} {
		f.untilReady(t, server, 0)
		a, b, none := f.join(t, server), f.join(t, server), f.join(t, server)
		level := func(m *member, level string) Answer {
			return m.request(t, mcp.SetLevel, `{"level":"`+level+`"}`)
		}
		for _, r := range []session.Reply{level(a, "error"), level(b, "debug"), level(b, "debug"), level(a, "critical")} {
			if string(r.Result) != "{}" {
				t.Errorf("%s: %+v", server, r)
			}
		}
		if r := level(a, "loud"); r.Error == nil || r.Error.Code != wirejson.CodeInvalidParams {
			t.Errorf("%s: %+v", server, r)
		}
		if got := a.seen(t, mcp.SetLevel); !slices.Equal(got, []string{`{"level":"error"}`, `{"level":"debug"}`}) {
			t.Errorf("%s: the server was told %q", server, got)
		}
		for m, want := range map[*member]int{a: 0, b: 2, none: 2} { // of level info
			if _, events := m.mustUse(t, "busy", `{"n":1}`); count(events, mcp.LogMessage) != want {
				t.Errorf("%s: %q, want %d messages", server, events, want)
			}
		}
		b.c.Close()
		a.untilSeen(t, mcp.SetLevel, `{"level":"error"}`, `{"level":"debug"}`, `{"level":"critical"}`)
	}
}

// TestSharedLevelUnanswered: if it is unknown whether the server has accepted a level, MCPProxy sends its clients' level
// once more.
func TestSharedLevelUnanswered(t *testing.T) {
	t.Parallel()
	s, taken := club(), make(chan struct{})
	f := newFixture(t)
	f.ApplySpecs([]Spec{{Name: "s", Transport: HTTP, Shared: true, URL: mcptest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if !bytes.Contains(body, []byte(`"critical"`)) {
			s.ServeHTTP(w, r)
			return
		}
		s.ServeHTTP(httptest.NewRecorder(), r) // the server gets the request, but its answer is lost
		close(taken)
		<-r.Context().Done()
	})).URL}})
	f.untilReady(t, "s", 0)
	m := f.join(t, "s")
	m.request(t, mcp.SetLevel, `{"level":"debug"}`)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-taken; cancel() }()
	if _, err := f.Relay(ctx, "s", m.c, session.Request{ID: json.RawMessage("1"), Method: mcp.SetLevel, Params: json.RawMessage(`{"level":"critical"}`)}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	m.untilSeen(t, mcp.SetLevel, `{"level":"debug"}`, `{"level":"critical"}`, `{"level":"debug"}`)
}

// TestSharedSubscriptions: an update reaches the subscribed clients. The server gets the first subscription and the end of
// the last one.
func TestSharedSubscriptions(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.ApplySpecs(clubs(t))
	for _, server := range []string{"pipe", "http"} {
		f.untilReady(t, server, 0)
		a, b, c := f.join(t, server), f.join(t, server), f.join(t, server)
		a.subscribe(t, mcp.Subscribe, "file:///x")
		b.subscribe(t, mcp.Subscribe, "file:///x")
		b.subscribe(t, mcp.Subscribe, "file:///dir")
		a.untilSeen(t, mcp.Subscribe, `{"uri":"file:///x"}`, `{"uri":"file:///dir"}`)
		if r := c.request(t, mcp.Subscribe, `{"uri":"refused:x"}`); r.Error == nil || r.Error.Code != -32002 {
			t.Errorf("%s: %+v", server, r)
		}
		changed := func(uri string) {
			a.mustUse(t, "say", `{"method":"`+mcp.ResourceUpdated+`","params":{"uri":"`+uri+`"}}`)
		}
		settled := func() { // all hear of this one, so that they have heard what was before
			t.Helper()
			before := map[*member]int{}
			for _, m := range []*member{a, b, c} {
				m.mu.Lock()
				before[m] = count(m.heard, mcp.ToolsChanged)
				m.mu.Unlock()
			}
			a.mustUse(t, "say", `{"method":"`+mcp.ToolsChanged+`"}`)
			for m, n := range before {
				m.untilHears(t, "list_changed", func(heard []string) bool { return count(heard, mcp.ToolsChanged) > n })
			}
		}
		heard := func(m *member, uri string) int {
			m.mu.Lock()
			defer m.mu.Unlock()
			return count(m.heard, `"uri":"`+uri+`"`)
		}
		changed("file:///x")
		changed("refused:x")
		changed("file:///dir/y")
		changed("file:///dirt")
		settled()
		for m, want := range map[*member][4]int{a: {1, 0, 0, 0}, b: {1, 0, 1, 0}, c: {}} {
			if got := [4]int{heard(m, "file:///x"), heard(m, "refused:x"), heard(m, "file:///dir/y"), heard(m, "file:///dirt")}; got != want {
				t.Errorf("%s: heard %v, want %v", server, got, want)
			}
		}
		a.subscribe(t, mcp.Unsubscribe, "file:///x")
		a.subscribe(t, mcp.Unsubscribe, "file:///x")
		if got := a.seen(t, mcp.Unsubscribe); len(got) != 0 {
			t.Errorf("%s: %q although the other one still wants it", server, got)
		}
		changed("file:///x")
		settled()
		if heard(a, "file:///x") != 1 || heard(b, "file:///x") != 2 {
			t.Errorf("%s: %d and %d", server, heard(a, "file:///x"), heard(b, "file:///x"))
		}
		b.c.Close()
		a.untilSeen(t, mcp.Unsubscribe, `{"uri":"file:///dir"}`, `{"uri":"file:///x"}`)
	}
}

// TestSubscriptionsAreBounded: their number and the size of their URIs are limited.
func TestSubscriptionsAreBounded(t *testing.T) {
	shared, bridged := newSharedClient(newSharedConnection(nil)), newLegacyClientBridge(nil)
	for name, subscribe := range map[string]func(uri string, on bool) bool{"shared": shared.setSubscription, "bridged": bridged.setSubscription} {
		large := func(i int) string { return fmt.Sprintf("x:%02d", i) + strings.Repeat("l", 128<<10) }
		n := 0
		for subscribe(large(n), true) {
			n++
		}
		if n != 7 {
			t.Errorf("%s: %d large ones", name, n)
		}
		if !subscribe(large(0), true) || !subscribe("small", true) || !subscribe(large(0), false) || !subscribe(large(n), true) {
			t.Errorf("%s: a subscription within the limits is refused", name)
		}
		for i := range n + 1 {
			subscribe(large(i), false)
		}
		for n = 1; subscribe(fmt.Sprint(n), true); n++ {
		}
		if n != maxSubscriptions || !subscribe("small", true) {
			t.Errorf("%s: %d small ones", name, n)
		}
	}
}

// TestSharedModernSubscription: a modern subscription uses the same session.
func TestSharedModernSubscription(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.ApplySpecs(clubs(t))
	for _, server := range []string{"pipe", "http"} {
		f.untilReady(t, server, 0)
		a := f.join(t, server)
		ctx, cancel := context.WithCancel(t.Context())
		events, done := make(chan string, 100), make(chan error, 1)
		go func() {
			_, err := f.Relay(ctx, server, nil, session.Request{ID: json.RawMessage(`"s"`), Method: mcp.Listen, Say: func(e session.Event) { events <- string(e.AppendMessage(nil)) },
				Params: modernParams(`{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["file:///x"]}}`)})
			done <- err
		}()
		if first := <-events; !strings.Contains(first, mcp.Acknowledged) || !strings.Contains(first, `"file:///x"`) {
			t.Errorf("%s: %s", server, first)
		}
		a.mustUse(t, "say", `{"method":"`+mcp.ResourceUpdated+`","params":{"uri":"file:///other"}}`)
		a.mustUse(t, "say", `{"method":"`+mcp.ResourceUpdated+`","params":{"uri":"file:///x"}}`)
		if e := <-events; !strings.Contains(e, mcp.ResourceUpdated) || !strings.Contains(e, `"file:///x"`) || !strings.Contains(e, `"s"`) {
			t.Errorf("%s: %s", server, e)
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", server, err)
		}
		a.untilSeen(t, mcp.Unsubscribe, `{"uri":"file:///x"}`)
		if got := a.seen(t, mcp.Initialize); len(got) != 1 {
			t.Errorf("%s: %d times initialize", server, len(got))
		}
	}
}

// TestSharedSessionsOutliveTheConnection: a call fails while the server is gone. When it is back the clients continue with
// their levels and subscriptions.
func TestSharedSessionsOutliveTheConnection(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	web := club()
	pipe, overHTTP := stdioSpec(t, "pipe", "club"), httpSpec(t, "http", web)
	pipe.Shared, overHTTP.Shared = true, true
	f.ApplySpecs([]Spec{pipe, overHTTP})
	for server, lose := range map[string]func(*member){
		"pipe": func(m *member) {
			_, _, err := m.use(t.Context(), "crash", "{}")
			wantCode(t, err, problem.UpstreamError)
		},
		"http": func(*member) { web.DropSessions() },
	} {
		f.untilReady(t, server, 0)
		a, b := f.join(t, server), f.join(t, server)
		a.subscribe(t, mcp.Subscribe, "file:///x")
		a.request(t, mcp.SetLevel, `{"level":"debug"}`)
		lose(b)
		if r := b.request(t, "odd/method", "{}"); r.Error == nil || r.Error.Code != wirejson.CodeMethodNotFound {
			t.Errorf("%s: %+v", server, r)
		}
		for _, m := range []*member{a, b} {
			if _, events := m.mustUse(t, "busy", `{"n":1}`); count(events, mcp.Progress) != 1 {
				t.Errorf("%s: %q", server, events)
			}
		}
		a.untilHears(t, "the resource may have changed", func(heard []string) bool { return count(heard, `"uri":"file:///x"`) == 1 })
		b.untilHears(t, "the resources may have changed", func(heard []string) bool { return count(heard, mcp.ResourcesChanged) == 1 })
		times := map[string]int{"pipe": 1, "http": 2}[server] // the process is another one
		a.untilSeenCount(t, mcp.Subscribe, times)
		a.untilSeenCount(t, mcp.SetLevel, times)
		b.mu.Lock()
		if count(b.heard, mcp.ToolsChanged) != 0 || count(b.heard, mcp.ResourceUpdated) != 0 {
			t.Errorf("%s: heard %q", server, b.heard)
		}
		b.mu.Unlock()
		if err := f.Restart(server); err != nil {
			t.Fatal(err)
		}
		f.untilReady(t, server, 2)
		a.mustUse(t, "busy", `{"n":2}`)
		if server == "http" { // the first to notice is a call of a tool
			web.DropSessions()
			b.mustUse(t, "busy", `{"n":3}`)
		}
	}
}

// TestSharedServerChangesAfterRestart: clients that got another initialize result start a new session.
func TestSharedServerChangesAfterRestart(t *testing.T) {
	t.Parallel()
	first, second := club(), clubOf(mcptest.Options{Capabilities: `{"tools":{}}`})
	h := &swap{}
	h.now.Store(first)
	f := newFixture(t)
	f.ApplySpecs([]Spec{{Name: "s", Transport: HTTP, URL: mcptest.Serve(t, h).URL, Shared: true}})
	f.untilReady(t, "s", 0)
	a := f.join(t, "s")
	h.now.Store(second)
	first.DropSessions()
	f.until(t, "it is another one", func() bool { return string(f.last("s").Capabilities) == `{"tools":{}}` })
	<-a.c.Done()
	<-a.done
	if _, _, err := a.use(t.Context(), "busy", "{}"); !errors.Is(err, session.ErrEnded) {
		t.Errorf("it goes on: %v", err)
	}
	f.join(t, "s").mustUse(t, "busy", `{"n":1}`)
}

// TestSlowClientDelaysNoOther checks that a message on the server's own stream for one slow client does not delay other
// clients.
func TestSlowClientDelaysNoOther(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.ApplySpecs(clubs(t)[1:])
	f.untilReady(t, "http", 0)
	a, b := f.join(t, "http"), f.join(t, "http")
	stuck, free, slow := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		var once sync.Once
		_, err := f.Call(t.Context(), "http", Call{Tool: "late", Passed: &Passed{Session: a.c, Request: session.Request{ID: json.RawMessage("1"),
			Method: mcp.CallTool, Params: json.RawMessage(`{"name":"late","_meta":{"progressToken":"t"}}`),
			Say: func(session.Event) { once.Do(func() { close(stuck) }); <-free }}}})
		slow <- err
	}()
	b.untilSeenCalls(t, 1)
	calls := b.seen(t, mcp.CallTool)
	var token string
	for _, params := range calls {
		if strings.Contains(params, `"late"`) {
			token = string(wirejson.Find(wirejson.Find([]byte(params), "_meta"), "progressToken"))
		}
	}
	for range 2 {
		b.mustUse(t, "say", `{"method":"`+mcp.Progress+`","params":{"progressToken":`+token+`,"progress":1}}`)
	}
	<-stuck
	b.mustUse(t, "say", `{"method":"`+mcp.ToolsChanged+`"}`)
	b.untilHears(t, "list_changed", func(heard []string) bool { return count(heard, mcp.ToolsChanged) > 0 })
	b.mustUse(t, "release", "{}")
	close(free)
	if err := <-slow; err != nil {
		t.Error(err)
	}
}

// TestSharingChanges: the open sessions of clients end, and the server keeps running.
func TestSharingChanges(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	spec := stdioSpec(t, "s", "club")
	f.ApplySpecs([]Spec{spec})
	f.untilReady(t, "s", 0)
	before, _ := f.State("s")
	pid := func(m *member) string {
		result, _ := m.mustUse(t, "pid", "{}")
		return result
	}
	for _, on := range []bool{true, false, true} {
		m := f.join(t, "s")
		spec.Shared = on
		f.ApplySpecs([]Spec{spec})
		<-m.c.Done()
		next := f.join(t, "s")
		if same := strings.Contains(pid(next), fmt.Sprintf(`"%d"`, before.PID)); same != on {
			t.Errorf("shared %t, uses the shared process: %t", on, same)
		}
	}
	if now, _ := f.State("s"); now.PID != before.PID || now.Restarts != 0 {
		t.Errorf("the server was affected: %+v, before %+v", now, before)
	}
}

// TestManyShareOneProcess: the limit on processes does not apply to shared sessions.
func TestManyShareOneProcess(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.ApplySpecs(clubs(t)[:1])
	f.untilReady(t, "pipe", 0)
	for range maxProcesses + 1 {
		f.converse(t, "pipe")
	}
}

// swap serves one server or another.
type swap struct {
	now atomic.Pointer[mcptest.Server]
}

func (s *swap) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.now.Load().ServeHTTP(w, r) }

// TestSharedOfficialSDK: servers of the official SDK over each transport, also modern ones, for which a legacy client is
// bridged.
func TestSharedOfficialSDK(t *testing.T) {
	t.Parallel()
	specs := sdkSpecs(t)
	url, _, _ := mcptest.ServeSDKOverSSE(t)
	specs["sse"] = Spec{Transport: upstream.SSE, URL: url}
	f := newFixture(t)
	var all []Spec
	for name, spec := range specs {
		spec.Name, spec.Shared = name, true
		all = append(all, spec)
	}
	f.ApplySpecs(all)
	for name := range specs {
		f.untilReady(t, name, 0)
		before, _ := f.State(name)
		var wg sync.WaitGroup
		for client := range 16 {
			c := f.converse(t, name)
			wg.Go(func() {
				for i := range 4 {
					text, progress := fmt.Sprintf("text %d-%d", client, i), 0
					steps := client%3 + 1
					reply, err := f.Call(t.Context(), name, Call{Tool: "echo", Passed: &Passed{Session: c, Request: session.Request{ID: json.RawMessage("1"), Method: mcp.CallTool,
						Params: fmt.Appendf(nil, `{"name":"echo","arguments":{"text":"%s","steps":%d},"_meta":{"progressToken":"same"}}`, text, steps),
						Say: func(e session.Event) {
							if e.Method == mcp.Progress && string(wirejson.Find(e.Params, "progressToken")) == `"same"` {
								progress++
							}
						}}}})
					if err != nil || !strings.Contains(string(reply.Result), `"`+text+`"`) || name != "json" && progress != steps {
						t.Errorf("%s: %s %v, %d of %d steps", name, reply.Result, err, progress, steps)
					}
				}
			})
		}
		wg.Wait()
		if after, _ := f.State(name); after.PID != before.PID || after.Restarts != 0 {
			t.Errorf("%s: %+v, before %+v", name, after, before)
		}
	}
}

// TestSharedPassesHeaders: header fields of an HTTP response reach the client.
func TestSharedPassesHeaders(t *testing.T) {
	t.Parallel()
	s := club()
	f := newFixture(t)
	f.ApplySpecs([]Spec{{Name: "s", Transport: HTTP, Shared: true, URL: mcptest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Request-Id", "7")
		s.ServeHTTP(w, r)
	})).URL}})
	f.untilReady(t, "s", 0)
	var head []mcp.Header
	_, err := f.Call(t.Context(), "s", Call{Tool: "busy", Passed: &Passed{Session: f.converse(t, "s"), Request: session.Request{ID: json.RawMessage("1"),
		Method: mcp.CallTool, Params: json.RawMessage(`{"name":"busy"}`), Head: func(fields []mcp.Header) { head = fields }}}})
	if err != nil || !slices.Contains(head, mcp.Header{Name: "X-Request-Id", Value: "7"}) {
		t.Errorf("%v %v", head, err)
	}
}
