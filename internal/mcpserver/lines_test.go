package mcpserver

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
)

const patience = time.Minute

// scripted is a surface whose methods say what it does.
type scripted struct {
	session.EndSignal
	mu      sync.Mutex
	told    []string
	closed  int
	seen    []session.Request
	callers []auth.Caller
	began   chan string
	ended   chan error
	listen  chan session.Event
	gate    chan struct{}
	forms   func(method string) session.EventDelivery // nil: all are Waiting
}

func (s *scripted) EventDeliveryOf(method string) session.EventDelivery {
	if s.forms == nil {
		return session.Waiting
	}
	return s.forms(method)
}

func newScripted() *scripted {
	return &scripted{EndSignal: *session.NewEndSignal(), began: make(chan string, 2000), ended: make(chan error, 2000), listen: make(chan session.Event), gate: make(chan struct{})}
}

func (s *scripted) OpenSession(_ context.Context, r *session.Request) (session.Session, session.Reply, error) {
	if string(r.ID) == `"slow"` {
		s.began <- string(r.ID)
		<-s.gate
	}
	return s, session.Reply{Result: json.RawMessage("{\n\"protocolVersion\":\"" + strings.Trim(string(r.ID), `"`) + "\"}")}, nil
}

func (s *scripted) Do(ctx context.Context, r *session.Request) (session.Reply, error) {
	s.mu.Lock()
	s.seen = append(s.seen, *r)
	s.callers = append(s.callers, *r.Caller)
	s.mu.Unlock()
	switch r.Method {
	case "wait", mcp.Listen:
		s.began <- string(r.ID)
		<-ctx.Done()
		s.ended <- context.Cause(ctx)
		return session.Reply{}, ctx.Err()
	case "gate":
		s.began <- string(r.ID)
		<-s.gate
	case "say":
		for i := range 3 {
			r.Say(session.Event{Method: "notifications/progress", Params: json.RawMessage(fmt.Sprintf("{\"n\":\n%d}", i))})
		}
	case "flood":
		for range 300 {
			r.Say(session.Event{Method: "notifications/progress", Params: json.RawMessage(`"` + strings.Repeat("x", 100_000) + `"`)})
		}
		s.ended <- context.Cause(ctx)
	case "big":
		s.began <- string(r.ID)
		return session.Reply{Front: []byte(`{"a":1,`), Result: json.RawMessage(`{"text":"` + strings.Repeat("y", 3_000_000) + "\",\r\n\"b\":2"), Back: []byte("}")}, nil
	case "over":
		return session.Reply{}, session.ErrEnded
	case "panic":
		panic("boom")
	case "refused":
		return session.Reply{Error: &wirejson.RPCError{Code: -32001, Message: "no"}}, nil
	}
	return session.Reply{Result: json.RawMessage("{\r\n\"method\":\n\"" + r.Method + `"}`)}, nil
}

func (s *scripted) NotifyServer(_ context.Context, method string, _ json.RawMessage) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = append(s.told, method)
	return nil
}

func (s *scripted) AnswerServerQuestion(_ context.Context, id json.RawMessage, r session.Reply) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = append(s.told, string(id)+" "+string(r.Result))
	return nil
}

func (s *scripted) Listen(ctx context.Context, say func(session.Event), opened func()) error {
	opened()
	for {
		select {
		case e := <-s.listen:
			say(e)
		case <-s.Done():
			return session.ErrEnded
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (s *scripted) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed++
}

// onSocket has the server of the harness answer on a socket, too.
func (h *harness) onSocket() (path string) {
	path, _ = h.onSocketUntil()
	return path
}

// onSocketUntil returns also what cuts off the requests.
func (h *harness) onSocketUntil() (path string, cutOff func()) {
	h.t.Helper()
	base, cutOff := context.WithCancel(context.Background())
	path = filepath.Join(h.t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		h.t.Fatal(err)
	}
	server := &http.Server{Handler: h.srv, ConnContext: auth.MarkSocketConn, BaseContext: func(net.Listener) context.Context { return base }}
	go func() { _ = server.Serve(l) }()
	h.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		h.srv.Shutdown(ctx)
		if ctx.Err() != nil {
			h.t.Error("the lines do not end")
		}
		_ = server.Close()
		cutOff()
	})
	return path, cutOff
}

// liner is a client that speaks lines.
type liner struct {
	t  *testing.T
	nc net.Conn
	br *bufio.Reader
}

func (h *harness) upgrade(network, address, path string) (*liner, *http.Response) {
	h.t.Helper()
	nc, err := net.Dial(network, address)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { nc.Close() })
	_ = nc.SetDeadline(time.Now().Add(patience))
	fmt.Fprintf(nc, "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: mcpproxy-lines/1\r\n\r\n", path)
	br := bufio.NewReader(nc)
	resp, err := http.ReadResponse(br, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	return &liner{h.t, nc, br}, resp
}

func (h *harness) lines(socket, path string) *liner {
	h.t.Helper()
	l, resp := h.upgrade("unix", socket, path)
	if resp.StatusCode != http.StatusSwitchingProtocols {
		h.t.Fatalf("status %d", resp.StatusCode)
	}
	return l
}

func (l *liner) say(format string, args ...any) {
	l.t.Helper()
	if _, err := fmt.Fprintf(l.nc, format+"\n", args...); err != nil {
		l.t.Fatal(err)
	}
}

func (l *liner) hear() string {
	l.t.Helper()
	line, err := l.br.ReadString('\n')
	if err != nil {
		l.t.Fatalf("%q %v", line, err)
	}
	return strings.TrimSuffix(line, "\n")
}

func (l *liner) expect(want string) {
	l.t.Helper()
	if got := l.hear(); got != want {
		l.t.Errorf("got  %.300s\nwant %.300s", got, want)
	}
}

// ends wants the end of the connection.
func (l *liner) ends() {
	l.t.Helper()
	if line, err := l.br.ReadString('\n'); err != io.EOF {
		l.t.Errorf("not the end: %q %v", line, err)
	}
}

func (l *liner) greet(version string) {
	l.t.Helper()
	l.say(`{"jsonrpc":"2.0","id":%q,"method":"initialize","params":{"protocolVersion":%q,"clientInfo":{"name":"c","version":"9"}}}`, version, version)
	if got := l.hear(); !strings.Contains(got, version) || strings.Contains(got, "error") {
		l.t.Fatal(got)
	}
}

// scriptedLines are lines with a scripted surface.
func scriptedLines(t *testing.T) (*harness, *scripted, *liner, string) {
	h, s := newHarness(t), newScripted()
	h.srv.At = func(string) session.Endpoint { return s }
	socket := h.onSocket()
	return h, s, h.lines(socket, "/mcp/servers/one"), socket
}

func claims(params string) string { return "{" + params + modernMeta + "}" }

// TestLinesCallers: the built-in tools in both protocols, and the recorded caller.
func TestLinesCallers(t *testing.T) {
	h := newHarness(t)
	l := h.lines(h.onSocket(), "/mcp")
	const call = `{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"call_tool_read","arguments":{"name":"a:b"}%s}}`
	l.say(call, `"early"`, "")
	if got := l.hear(); !strings.Contains(got, `"id":"early","error":{"code":-32600`) {
		t.Error(got)
	}
	if len(h.gw.refused) != 1 || h.gw.refused[0].Problem.Code != "INVALID_REQUEST" {
		t.Errorf("on record: %+v", h.gw.refused)
	}
	l.greet("2025-11-25")
	for i, more := range []string{"", "," + modernMeta} {
		l.say(call, fmt.Sprint(i), more)
		if got := l.hear(); !strings.Contains(got, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{`, i)) || !strings.Contains(got, "done") {
			t.Error(got)
		}
		want := auth.Caller{Actor: auth.Actor{Kind: auth.Agent}, Source: auth.MCP, RequestID: fmt.Sprint(i), ClientName: "c", ClientVersion: "9"}
		if i == 1 {
			want.ClientName = "tester"
		}
		got := h.gw.lastCall(t).Caller
		if (got.SessionID == "") != (i == 1) {
			t.Errorf("session %q", got.SessionID)
		}
		if got.SessionID = ""; got != want {
			t.Errorf("caller %+v, want %+v", got, want)
		}
	}
}

// TestLinesMessages: messages reach the surface, in both directions and in order, and each answer is a line.
func TestLinesMessages(t *testing.T) {
	_, s, l, _ := scriptedLines(t)
	l.say(`{"jsonrpc":"2.0","method":"notifications/early"}`) // there is no session yet
	l.greet("2025-11-25")
	l.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	s.listen <- session.Event{Method: "elicitation/create", ID: json.RawMessage("3"), Params: json.RawMessage("{\n}")}
	l.expect(`{"jsonrpc":"2.0","id":3,"method":"elicitation/create","params":{ }}`)
	l.say(`{"jsonrpc":"2.0","id":3,"result":{"big":9007199254740993}}`)
	l.say(`{"jsonrpc":"2.0","id":3,"method":"say"}`)
	for i := range 3 {
		l.expect(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"n": %d}}`, i))
	}
	l.expect(`{"jsonrpc":"2.0","id":3,"result":{  "method": "say"}}`)
	s.mu.Lock()
	if got := strings.Join(s.told, ","); got != `notifications/initialized,3 {"big":9007199254740993}` {
		t.Errorf("told %s", got)
	}
	if r := s.seen[0]; r.Headers != nil || r.Size != len(`{"jsonrpc":"2.0","id":3,"method":"say"}`) {
		t.Errorf("%+v", r)
	}
	s.mu.Unlock()
	l.say(`{"jsonrpc":"2.0","id":4,"method":"big"}`)
	if got := l.hear(); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":4,"result":{"a":1,"text":"yyy`) || !strings.HasSuffix(got, `yyy",  "b":2}}`) {
		t.Errorf("%.100s … %s", got, got[len(got)-30:])
	}
	l.greet("2025-06-18") // in the place of the first one
	s.mu.Lock()
	if s.closed != 1 {
		t.Errorf("%d sessions were closed", s.closed)
	}
	s.mu.Unlock()
	l.nc.Close()
}

// TestLinesRefusals: each invalid request gets a response with its id, and nothing else does.
func TestLinesRefusals(t *testing.T) {
	_, _, l, _ := scriptedLines(t)
	modern := func(method, params string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":` + params + `}`
	}
	session := false
	for _, tt := range []struct{ say, want string }{
		{`{"jsonrpc":"2.0","id":1,"method":"x"}`, `"id":1,"error":{"code":-32600,"message":"Mcp-Session-Id is missing.`},
		{`{"jsonrpc":"2.0","id":1.5,"method":"x"}`, `"id":1.5,"error":{"code":-32600,"message":"Invalid request: id must`},
		{`{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":1,"a":2}}`, `"id":1,"error":{"code":-32700`},
		{`{"jsonrpc":"2.0","id":1,"method":"x","params":[]}`, `"id":1,"error":{"code":-32602`},
		{`{"jsonrpc":"2.0","id":"l","method":"x","params":{"a":"` + strings.Repeat("x", maxBody) + `"}}`, `"id":"l","error":{"code":-32600,"message":"The request body is larger than 4 MiB`},
		{modern("x", `{"_meta":{"`+mcp.MetaVersion+`":7}}`), `"error":{"code":-32602,"message":"Invalid params: _meta.`},
		{modern("x", `{"_meta":{"`+mcp.MetaVersion+`":"2027-01-01"}}`), `"error":{"code":-32022`},
		{modern("x", `{"_meta":{"`+mcp.MetaVersion+`":"2026-07-28"}}`), `Capabilities is required`},
		{modern("tools/call", claims("")), `"error":{"code":-32602,"message":"Invalid params: params.name must be a string"`},
		{modern("x", claims("")), `"result":{`},
		{`[{"jsonrpc":"2.0","id":8,"method":"ping"}]`, `batch 1 {"jsonrpc":"2.0","error":{"code":-32600,"message":"Only a session with protocol version`},
		{`[{"jsonrpc":"2.0","id":8,"method":"` + strings.Repeat("x", maxBody) + `"}]`, `batch 2 {"jsonrpc":"2.0","error":{"code":-32600,"message":"The request body is larger than 4 MiB`},
		{"session", ""},
		{`{"jsonrpc":"2.0","id":1,"method":"panic"}`, `"id":1,"error":{"code":-32603,"message":"Something went wrong inside`},
		{`{"jsonrpc":"2.0","id":1,"method":"refused"}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"no"}}`},
		{`[{"jsonrpc":"2.0","id":8,"method":"a"},{"jsonrpc":"2.0","method":"b"},{"jsonrpc":"2.0","id":9,"method":"initialize"}]`,
			`batch 3 [{"jsonrpc":"2.0","id":8,"result":{  "method": "a"}},{"jsonrpc":"2.0","id":9,"error"`},
		{`[{"jsonrpc":"2.0","method":"b"}]`, "batch 4"},
		{`[`, `batch 5 {"jsonrpc":"2.0","error":{"code":-32700`},
		{`[{"jsonrpc":"2.0","id":8,"method":"panic"}]`, `batch 6 {"jsonrpc":"2.0","error":{"code":-32603,"message":"Something went wrong inside`},
	} {
		if tt.say == "session" {
			l.greet("2025-03-26")
			session = true
			continue
		}
		// Messages without an answer come first: an answer to one of them would precede the others.
		l.say(`{"jsonrpc":"2.0","id":null,"method":"x"}` + "\n" + `{"jsonrpc":"2.0","id":1,"result":7,"error":8}` + "\n" + `{"jsonrpc":"2.0","method":"x","params":7}` + "\n\n?")
		if tt.say != "" {
			l.say("%s", tt.say)
		}
		if got := l.hear(); !strings.Contains(got, tt.want) {
			t.Errorf("session %v, %.100s: %.300s", session, tt.say, got)
		}
	}
}

// TestLinesCancel: a notification cancels the request in both protocols, and in a session the server gets the client's
// reason.
func TestLinesCancel(t *testing.T) {
	_, s, l, _ := scriptedLines(t)
	l.greet("2025-11-25")
	for _, params := range []string{"{}", claims("")} {
		l.say(`{"jsonrpc":"2.0","id":"w","method":"wait","params":%s}`, params)
		<-s.began
		l.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"v"}}`)
		l.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"w","reason":"enough"}}`)
		l.expect(`{"jsonrpc":"2.0","id":"w","error":{"code":-32800,"message":"The request was cancelled."}}`)
		c, ok := errors.AsType[*session.ClientCancelledError](<-s.ended)
		if want := params == "{}"; !ok || strings.Contains(string(c.Params), "enough") != want {
			t.Errorf("%s: %+v", params, c)
		}
	}
}

// TestLinesEnd: after the last line, open requests are answered before the connection ends. A client that has gone gets no
// answers.
func TestLinesEnd(t *testing.T) {
	_, s, l, _ := scriptedLines(t)
	l.greet("2025-11-25")
	l.say(`{"jsonrpc":"2.0","id":1,"method":"gate"}`)
	l.say("end")
	<-s.began
	close(s.gate)
	l.expect(`{"jsonrpc":"2.0","id":1,"result":{  "method": "gate"}}`)
	l.ends()

	_, s, l, _ = scriptedLines(t)
	l.greet("2025-11-25")
	l.say(`{"jsonrpc":"2.0","id":1,"method":"wait"}`)
	<-s.began
	l.nc.Close()
	if err := <-s.ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestLinesSessionEnded: a request that the server has not acted on, because its session ended, is marked as such, and the
// connection ends, even without a request.
func TestLinesSessionEnded(t *testing.T) {
	_, s, l, _ := scriptedLines(t)
	l.greet("2025-11-25")
	l.say(`{"jsonrpc":"2.0","id":1,"method":"gate"}`)
	<-s.began
	l.say(`{"jsonrpc":"2.0","id":2,"method":"over"}`)
	l.expect(`over {"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"Session not found: it has ended or expired. Send initialize to start a new one.","data":{"code":"INTERNAL"}}}`)
	close(s.gate)
	l.expect(`{"jsonrpc":"2.0","id":1,"result":{  "method": "gate"}}`)
	l.ends()

	h := newHarness(t)
	h.srv.At = func(string) session.Endpoint { return s }
	l = h.lines(h.onSocket(), "/mcp/servers/one")
	l.greet("2025-11-25")
	l.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	s.Signal(session.ErrEnded)
	l.ends()
}

// TestLinesShutdown: a stop lets requests in flight finish, ends endless ones, and disconnects clients that do not read.
func TestLinesShutdown(t *testing.T) {
	h, s := newHarness(t), newScripted()
	h.srv.At = func(string) session.Endpoint { return s }
	socket, cutOff := h.onSocketUntil()
	l := h.lines(socket, "/mcp/servers/one")
	l.greet("2025-11-25")
	l.say(`{"jsonrpc":"2.0","id":1,"method":"gate"}`)
	l.say(`{"jsonrpc":"2.0","id":2,"method":"subscriptions/listen","params":%s}`, claims(""))
	<-s.began
	<-s.began
	stuck := h.lines(socket, "/mcp/servers/one")
	stuck.greet("2025-11-25")
	for id := range 20 {
		stuck.say(`{"jsonrpc":"2.0","id":%d,"method":"big"}`, id)
	}
	<-s.began
	stopped := make(chan struct{})
	go func() { h.srv.Shutdown(context.Background()); close(stopped) }()
	<-s.ended
	if got := l.hear(); !strings.Contains(got, `"id":2`) {
		t.Error(got)
	}
	close(s.gate)
	l.expect(`{"jsonrpc":"2.0","id":1,"result":{  "method": "gate"}}`)
	l.ends()
	select {
	case <-stopped:
		t.Error("the client that does not read was not waited for")
	default:
	}
	cutOff()
	<-stopped
	nc, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	_ = nc.SetDeadline(time.Now().Add(patience))
	_, _ = io.WriteString(nc, "GET /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: mcpproxy-lines/1\r\n\r\n")
	if rest, _ := io.ReadAll(nc); len(rest) > 0 {
		t.Errorf("after the stop: %s", rest)
	}
}

// TestLinesOfSlowClient: a client that does not read delays only its own requests, and loses nothing when it reads again.
func TestLinesOfSlowClient(t *testing.T) {
	h, s, l, socket := scriptedLines(t)
	l.greet("2025-11-25")
	l.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	l.say(`{"jsonrpc":"2.0","id":1,"method":"flood"}`)
	for range 50 { // who speaks by itself never waits
		s.listen <- session.Event{Method: "notifications/message", Params: json.RawMessage(`"` + strings.Repeat("x", 100_000) + `"`)}
	}
	other := h.lines(socket, "/mcp/servers/one")
	other.greet("2025-11-25")
	other.say(`{"jsonrpc":"2.0","id":1,"method":"quick"}`)
	other.expect(`{"jsonrpc":"2.0","id":1,"result":{  "method": "quick"}}`)
	select {
	case <-s.ended:
		t.Error("more is kept for a client than there may be")
	default:
	}
	progress := 0
	for {
		line := l.hear()
		if strings.Contains(line, "notifications/progress") {
			progress++
		}
		if strings.HasPrefix(line, `{"jsonrpc":"2.0","id":1`) {
			break
		}
	}
	if err := <-s.ended; err != nil || progress != 300 {
		t.Errorf("%d of 300 messages, %v", progress, err)
	}
}

// TestLinesOnlyOverTheSocket: lines are not available over TCP, and HTTP still works over the socket for commands of the
// previous version.
func TestLinesOnlyOverTheSocket(t *testing.T) {
	h := newHarness(t)
	socket := h.onSocket()
	_, resp := h.upgrade("tcp", h.http.Listener.Addr().String(), "/mcp")
	if resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("over TCP: status %d", resp.StatusCode)
	}
	client := http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", socket) }}}
	defer client.CloseIdleConnections()
	resp, err := client.Post("http://localhost/mcp", "application/json", strings.NewReader(initializeBody))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK || resp.Header.Get(mcp.HeaderSession) == "" {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
}

// renewed are sessions of which each ends when it is closed.
type renewed struct{ *scripted }

func (s renewed) OpenSession(_ context.Context, r *session.Request) (session.Session, session.Reply, error) {
	return &endsByClose{s.scripted, session.NewEndSignal()}, session.Reply{Result: json.RawMessage("{\"protocolVersion\":" + string(r.ID) + "}")}, nil
}

type endsByClose struct {
	*scripted
	end *session.EndSignal
}

func (s *endsByClose) Close()                { s.end.Signal(session.ErrEnded) }
func (s *endsByClose) Done() <-chan struct{} { return s.end.Done() }

func (s *endsByClose) Do(_ context.Context, r *session.Request) (session.Reply, error) {
	if r.Method == "wait" {
		s.began <- string(r.ID)
		<-s.Done()
		return session.Reply{}, session.ErrEnded
	}
	return session.Reply{Result: json.RawMessage("{}")}, nil
}

func (s *endsByClose) Listen(_ context.Context, _ func(session.Event), opened func()) error {
	opened()
	<-s.Done()
	return session.ErrEnded
}

// TestLinesSecondSession: a client that opens another session ends the first one, but not its connection.
func TestLinesSecondSession(t *testing.T) {
	h, s := newHarness(t), newScripted()
	h.srv.At = func(string) session.Endpoint { return renewed{s} }
	l := h.lines(h.onSocket(), "/mcp/servers/one")
	for range 50 {
		l.greet("2025-11-25")
		l.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		l.say(`{"jsonrpc":"2.0","id":1,"method":"wait"}`)
		<-s.began
		l.say(`{"jsonrpc":"2.0","id":"n","method":"initialize","params":{"protocolVersion":"n"}}`)
		heard := l.hear() + l.hear()
		if !strings.Contains(heard, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"Session not found`) || strings.Contains(heard, "over ") {
			t.Fatal(heard)
		}
		l.say(`{"jsonrpc":"2.0","id":2,"method":"x"}`)
		l.expect(`{"jsonrpc":"2.0","id":2,"result":{}}`)
	}
}

// TestLinesShutdownAmidInitialize: initialize is a request in flight, too.
func TestLinesShutdownAmidInitialize(t *testing.T) {
	h, s, l, _ := scriptedLines(t)
	l.say(`{"jsonrpc":"2.0","id":"slow","method":"initialize","params":{}}`)
	<-s.began
	h.srv.Close()
	time.AfterFunc(50*time.Millisecond, func() { close(s.gate) })
	l.expect(`{"jsonrpc":"2.0","id":"slow","result":{ "protocolVersion":"slow"}}`)
	l.ends()
}

// TestLinesSessionEndEndsStreams: the client's endless requests end with the session.
func TestLinesSessionEndEndsStreams(t *testing.T) {
	_, s, l, _ := scriptedLines(t)
	l.greet("2025-11-25")
	l.say(`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":%s}`, claims(""))
	<-s.began
	l.say(`{"jsonrpc":"2.0","id":2,"method":"over"}`)
	if heard := l.hear() + l.hear(); !strings.Contains(heard, `over {"jsonrpc":"2.0","id":2,"error"`) || !strings.Contains(heard, `{"jsonrpc":"2.0","id":1,"error"`) {
		t.Error(heard)
	}
	l.ends()
}

// TestLinesPanicWhileReading: a panic ends neither the connection nor other requests.
func TestLinesPanicWhileReading(t *testing.T) {
	_, s, l, _ := scriptedLines(t)
	s.forms = func(method string) session.EventDelivery {
		if method == "formless" {
			panic("boom")
		}
		return session.Waiting
	}
	l.greet("2025-11-25")
	l.say(`{"jsonrpc":"2.0","id":1,"method":"formless"}`)
	l.expect(`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"Something went wrong inside MCPProxy. See the log of the daemon for the cause."}}`)
	l.say(`{"jsonrpc":"2.0","id":2,"method":"x"}`)
	l.expect(`{"jsonrpc":"2.0","id":2,"result":{  "method": "x"}}`)
}
