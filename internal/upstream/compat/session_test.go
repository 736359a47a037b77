//go:build unix

package compat

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/testutil/mcptest"
)

func asker() *mcptest.Server { return mcptest.New(mcptest.Options{}, askTool()) }

// askTool sends a notification, asks its client, and sends another notification.
func askTool() mcptest.Tool {
	return mcptest.Tool{
		Definition: mcptest.ToolDefinition("ask"),
		Handle: func(c *mcptest.Call) (json.RawMessage, error) {
			c.SendLogMessage("before")
			c.SendProgress(1)
			answer, err := c.SendRequest("elicitation/create", json.RawMessage(`{"message":"`+fmt.Sprint(c.IntArgument("n", 0))+`","big":9007199254740993}`))
			if err != nil {
				return nil, err
			}
			c.SendProgress(2)
			return json.RawMessage(`{"content":[],"answer":` + string(answer.Result) + `}`), nil
		},
	}
}

const hello = `{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"c","version":"1"}}`

// converse opens a session of a client.
func (f *fixture) converse(t testing.TB, server string) *Session {
	t.Helper()
	c, a, err := f.Converse(t.Context(), server, session.Request{ID: json.RawMessage(`"i"`), Method: mcp.Initialize, Params: json.RawMessage(hello)})
	if err != nil || c == nil {
		t.Fatalf("no session: %v %+v", err, a)
	}
	if err := c.NotifyServer(t.Context(), mcp.Initialized, nil); err != nil {
		t.Fatal(err)
	}
	return c
}

// passed makes a call in a session and answers the server's requests.
func (f *fixture) passed(t testing.TB, server string, c *Session, id, params string) (result string, events []string, err error) {
	t.Helper()
	r := session.Request{ID: json.RawMessage(id), Method: mcp.CallTool, Params: json.RawMessage(params)}
	r.Say = func(e session.Event) {
		events = append(events, string(e.AppendMessage(nil)))
		if e.ID != nil {
			answer := json.RawMessage(`{"action":"accept","content":` + string(wirejson.Find(e.Params, "message")) + `}`)
			id := slices.Clone(e.ID)
			if err := c.AnswerServerQuestion(t.Context(), id, session.Reply{Result: answer}); err != nil {
				t.Error(err)
			}
		}
	}
	reply, err := f.Call(t.Context(), server, Call{Tool: "ask", Passed: &Passed{Request: r, Session: c}})
	return string(reply.Result), events, err
}

// TestSession: a server's messages in a client's own session reach that client, in order and unchanged, and the client answers
// the server's requests.
func TestSession(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.ApplySpecs([]Spec{stdioSpec(t, "pipe", "asker"), httpSpec(t, "http", asker())})
	for _, server := range []string{"pipe", "http"} {
		t.Run(server, func(t *testing.T) {
			f.untilReady(t, server, 0)
			c := f.converse(t, server)
			result, events, err := f.passed(t, server, c, `"x"`, `{"name":"ask","arguments":{"n":7},"_meta":{"progressToken":"mine"}}`)
			if err != nil || result != `{"content":[],"answer":{"action":"accept","content":"7"}}` {
				t.Fatalf("result %s %v", result, err)
			}
			want := []string{
				`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"before"}}`,
				`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"mine","progress":1}}`,
				`{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":"7","big":9007199254740993}}`,
				`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"mine","progress":2}}`,
			}
			if !slices.Equal(events, want) {
				t.Errorf("events\n%s", strings.Join(events, "\n"))
			}
			c.Close()
			<-c.Done()
			if _, _, err := f.passed(t, server, c, "2", `{"name":"ask"}`); !errors.Is(err, session.ErrEnded) {
				t.Errorf("after the end: %v", err)
			}
		})
	}
}

// TestReviewEndsSessions: when a server comes under review, its messages no longer reach any client, not even on an open
// stream.
func TestReviewEndsSessions(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	spec := stdioSpec(t, "pipe", "asker")
	f.ApplySpecs([]Spec{spec})
	pid := func() int {
		f.until(t, "it is ready", func() bool { s, _ := f.State("pipe"); return s.Phase == Ready })
		s, _ := f.State("pipe")
		return s.PID
	}
	first := pid()
	c := f.converse(t, "pipe")
	spec.Review = true
	f.ApplySpecs([]Spec{spec})
	<-c.Done()
	reviewed := pid()
	if reviewed == first {
		t.Error("subscriptions on the shared connection continue")
	}
	f.ApplySpecs([]Spec{spec})
	spec.Review = false
	f.ApplySpecs([]Spec{spec})
	if pid() != reviewed {
		t.Error("the server was restarted after its approval")
	}
	c = f.converse(t, "pipe")
	spec.Review = true
	f.ApplySpecs([]Spec{spec})
	<-c.Done()
}

// TestSessionsDoNotMix: many clients have calls in flight that all use the same ids and tokens.
func TestSessionsDoNotMix(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.ApplySpecs([]Spec{stdioSpec(t, "pipe", "asker"), httpSpec(t, "http", asker())})
	for server, clients := range map[string]int{"pipe": 4, "http": 16} {
		f.untilReady(t, server, 0)
		var wg sync.WaitGroup
		for client := range clients {
			c := f.converse(t, server)
			wg.Go(func() {
				for i := range 8 {
					n := client*100 + i
					result, events, err := f.passed(t, server, c, "1", fmt.Sprintf(`{"name":"ask","arguments":{"n":%d},"_meta":{"progressToken":1}}`, n))
					if err != nil || !strings.Contains(result, fmt.Sprintf(`"content":"%d"`, n)) || len(events) != 4 {
						t.Errorf("%s %d: %s %q %v", server, n, result, events, err)
					}
				}
			})
		}
		wg.Wait()
	}
}

// TestOnlyCallForwardsToolCalls: only Call forwards a call of a tool.
func TestOnlyCallForwardsToolCalls(t *testing.T) {
	t.Parallel()
	s := asker()
	f := newFixture(t)
	f.ApplySpecs([]Spec{httpSpec(t, "s", s)})
	f.untilReady(t, "s", 0)
	c := f.converse(t, "s")
	call := session.Request{ID: json.RawMessage("1"), Method: mcp.CallTool, Params: json.RawMessage(`{"name":"ask"}`)}
	for name, try := range map[string]func() error{
		"in a session":      func() error { _, err := f.Relay(t.Context(), "s", c, call); return err },
		"by itself":         func() error { _, err := f.Relay(t.Context(), "s", nil, call); return err },
		"as initialize":     func() error { _, _, err := f.Converse(t.Context(), "s", call); return err },
		"as a notification": func() error { return c.NotifyServer(t.Context(), mcp.CallTool, call.Params) },
	} {
		if err := try(); problem.From(err).Code != problem.InvalidRequest {
			t.Errorf("%s: %v", name, err)
		}
	}
	if seen := s.Received(mcp.CallTool); len(seen) != 0 {
		t.Errorf("the server was called %d times", len(seen))
	}
}

// TestProcessesAreBounded: every client of a stdio server has its own process, up to a limit.
func TestProcessesAreBounded(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.ApplySpecs([]Spec{{Name: "s", Transport: Stdio, Lazy: true}})
	sv, err := f.ServerForRequest(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	var open sessionSet
	another := func() *Session { return &Session{sv: sv, ending: session.NewEndSignal()} }
	for range maxProcesses {
		s := another()
		s.beginUse()
		if err := open.addSession(s); err != nil {
			t.Fatal(err)
		}
	}
	if err := open.addSession(another()); problem.From(err).Code != problem.Overloaded {
		t.Errorf("one more: %v", err)
	}
	for s := range open.all {
		s.busy.Store(0) // long ago
		break
	}
	if err := open.addSession(another()); err != nil {
		t.Errorf("an idle session is not evicted: %v", err)
	}
}

// TestPassedErrors: errors keep code, message, data and HTTP status; a session
// that the server has forgotten is over.
func TestPassedErrors(t *testing.T) {
	t.Parallel()
	s := asker()
	f := newFixture(t)
	h := mcptest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body, _ := io.ReadAll(r.Body); strings.Contains(string(body), `"odd/method"`) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusTeapot)
			w.Write([]byte(`{"jsonrpc":"2.0","id":"a","error":{"code":-32042,"message":"no","data":{"n":9007199254740993}}}`))
		} else {
			r.Body = io.NopCloser(strings.NewReader(string(body)))
			s.ServeHTTP(w, r)
		}
	}))
	f.ApplySpecs([]Spec{{Name: "s", Transport: HTTP, URL: h.URL}})
	f.untilReady(t, "s", 0)
	c := f.converse(t, "s")
	a, err := f.Relay(t.Context(), "s", c, session.Request{ID: json.RawMessage(`"a"`), Method: "odd/method"})
	if err != nil || a.Status != http.StatusTeapot || a.Error == nil || a.Error.Code != -32042 || string(a.Error.Data) != `{"n":9007199254740993}` {
		t.Errorf("%+v %v", a, err)
	}
	s.DropSessions()
	if _, err := f.Relay(t.Context(), "s", c, session.Request{ID: json.RawMessage("2"), Method: mcp.Ping}); !errors.Is(err, session.ErrEnded) {
		t.Errorf("a forgotten session: %v", err)
	}
	<-c.Done()
}

// TestStreamIsResumed: if a server ends the stream of a call before the response, MCPProxy resumes it, again if the resumed
// stream ends without an event.
func TestStreamIsResumed(t *testing.T) {
	t.Parallel()
	s := mcptest.New(mcptest.Options{}, mcptest.Tool{Definition: mcptest.ToolDefinition("ask"), Handle: func(c *mcptest.Call) (json.RawMessage, error) {
		c.WriteRaw([]byte("id: 7\nretry: 10\ndata:\n\n"))
		return nil, mcptest.ErrNoAnswer
	}})
	asked := make(chan string, 2)
	h := mcptest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		last := r.Header.Get("Last-Event-ID")
		if r.Method != http.MethodGet || last == "" {
			s.ServeHTTP(w, r)
			return
		}
		asked <- last
		w.Header().Set("Content-Type", "text/event-stream")
		if len(asked) == 1 {
			w.Write([]byte(": nothing yet\n\n"))
			return
		}
		w.Write(wirejson.AppendSSEEvent(nil, "8", []byte(`{"jsonrpc":"2.0","id":"x","result":{"late":true}}`)))
	}))
	f := newFixture(t)
	f.ApplySpecs([]Spec{{Name: "s", Transport: HTTP, URL: h.URL}})
	f.untilReady(t, "s", 0)
	result, _, err := f.passed(t, "s", f.converse(t, "s"), `"x"`, `{"name":"ask"}`)
	if err != nil || result != `{"late":true}` || <-asked != "7" || <-asked != "7" {
		t.Errorf("%s %v", result, err)
	}
}

// TestCancelledInTheClientsWords: the server gets the client's own params, with
// the id that it knows.
func TestCancelledInTheClientsWords(t *testing.T) {
	t.Parallel()
	s := asker()
	f := newFixture(t)
	f.ApplySpecs([]Spec{httpSpec(t, "s", s)})
	f.untilReady(t, "s", 0)
	c := f.converse(t, "s")
	ctx, cancel := context.WithCancelCause(t.Context())
	r := session.Request{ID: json.RawMessage(`"x"`), Method: mcp.CallTool, Params: json.RawMessage(`{"name":"ask"}`), Say: func(e session.Event) {
		if e.ID != nil {
			cancel(&session.ClientCancelledError{Params: json.RawMessage(`{"requestId":"x","reason":"enough","_meta":{"a":1}}`)})
		}
	}}
	if _, err := f.Call(ctx, "s", Call{Tool: "ask", Passed: &Passed{Request: r, Session: c}}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	seen := s.Received(mcp.Cancelled)
	if len(seen) != 1 || string(seen[0].Params) != `{"requestId":"x","reason":"enough","_meta":{"a":1}}` {
		t.Errorf("%+v", seen)
	}
}

// TestModernRelay: modern requests without a session share one process of the official SDK: ids, tokens and subscriptions do
// not mix.
func TestModernRelay(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for name, spec := range sdkSpecs(t) {
		if name != "stdio" && name != "stateless" {
			continue
		}
		spec.Name = name
		f.ApplySpecs([]Spec{spec})
		f.untilReady(t, name, 0)
		var wg sync.WaitGroup
		for i := range 32 {
			wg.Go(func() {
				text := fmt.Sprint("text ", i)
				params := modernParams(`{"name":"echo","arguments":{"text":"` + text + `","steps":3},"_meta":{"progressToken":1}}`)
				progress := 0
				reply, err := f.Call(t.Context(), name, Call{Tool: "echo", Passed: &Passed{Request: session.Request{ID: json.RawMessage("1"),
					Method: mcp.CallTool, Params: params, Headers: []mcp.Header{{Name: mcp.HeaderMethod, Value: mcp.CallTool}, {Name: mcp.HeaderName, Value: "echo"}},
					Say: func(e session.Event) {
						if e.Method == mcp.Progress && string(wirejson.Find(e.Params, "progressToken")) == "1" {
							progress++
						}
					}}}})
				if err != nil || !strings.Contains(string(reply.Result), `"`+text+`"`) || progress != 3 {
					t.Errorf("%s: %s %v, %d of 3 notes", name, reply.Result, err, progress)
				}
			})
		}
		wg.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		_, err := f.Relay(ctx, name, nil, session.Request{ID: json.RawMessage(`"mine"`), Method: mcp.Listen, Headers: []mcp.Header{{Name: mcp.HeaderMethod, Value: mcp.Listen}},
			Params: modernParams(`{"notifications":{"toolsListChanged":true}}`), Say: func(e session.Event) {
				id := wirejson.Find(wirejson.Find(e.Params, "_meta"), mcp.MetaSubscription)
				if e.Method != mcp.Acknowledged || string(id) != `"mine"` {
					t.Errorf("%s: %s", name, e.AppendMessage(nil))
				}
				cancel()
			}})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: the subscription ended with %v", name, err)
		}
	}
}

// TestParametersInHeaders: the parameters that a tool requires as headers.
func TestParametersInHeaders(t *testing.T) {
	definition := json.RawMessage(`{"name":"x","inputSchema":{"type":"object","properties":{
		"region":{"type":"string","x-mcp-header":"Region"},"n":{"type":"integer","x-mcp-header":"N"},"off":{"type":"boolean","x-mcp-header":"Off"},
		"deep":{"type":"object","properties":{"name":{"type":"string","x-mcp-header":"Deep"}}},"none":{"type":"string","x-mcp-header":"None"},"plain":{"type":"string"}}}}`)
	got := fmt.Sprint(mcp.ParamHeaders(definition, json.RawMessage(`{"region":"é","n":9007199254740993,"off":false,"deep":{"name":" a"},"none":null,"plain":"b"}`)))
	if want := `[{Mcp-Param-Region =?base64?w6k=?=} {Mcp-Param-N 9007199254740993} {Mcp-Param-Off false} {Mcp-Param-Deep =?base64?IGE=?=}]`; got != want {
		t.Errorf("%s", got)
	}
	arguments := json.RawMessage(`{"region":"é","n":7}`)
	for want, fields := range map[string][]mcp.Header{
		"":                            {{Name: "Mcp-Param-Region", Value: "=?base64?w6k=?="}, {Name: "mcp-param-n", Value: "7.0"}, {Name: "Mcp-Param-Other", Value: "x"}},
		"Mcp-Param-Region is missing": {{Name: "Mcp-Param-N", Value: "7"}},
		"Mcp-Param-N does not match the argument":                                   {{Name: "Mcp-Param-Region", Value: "=?base64?w6k=?="}, {Name: "Mcp-Param-N", Value: "8"}},
		"Mcp-Param-Off is given, but the argument is not":                           {{Name: "Mcp-Param-Region", Value: "=?base64?w6k=?="}, {Name: "Mcp-Param-N", Value: "7"}, {Name: "Mcp-Param-Off", Value: "true"}},
		"Mcp-Param-Region has invalid characters or a broken =?base64?…?= encoding": {{Name: "Mcp-Param-Region", Value: "é"}, {Name: "Mcp-Param-N", Value: "7"}},
	} {
		if got := mcp.ParamHeaderMismatch(definition, arguments, fields); got != want {
			t.Errorf("%v: %q, want %q", fields, got, want)
		}
	}
}

// TestUnexpectedMessages: a client with its own session gets no progress for an unknown token and no question that it has
// not declared; the server gets an error. Everything else passes.
func TestUnexpectedMessages(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	odd := func() *mcptest.Server {
		return mcptest.New(mcptest.Options{}, mcptest.Tool{Definition: mcptest.ToolDefinition("ask"), Handle: func(c *mcptest.Call) (json.RawMessage, error) {
			for _, token := range []string{`"tool-call-1"`, `"mine"`, `7`} {
				c.Notify("notifications/progress", json.RawMessage(`{"progressToken":`+token+`,"progress":1}`))
			}
			var refused []string
			for _, method := range []string{"roots/list", "sampling/createMessage"} {
				answer, err := c.SendRequest(method, nil)
				if err != nil {
					return nil, err
				}
				refused = append(refused, fmt.Sprint(answer.Error != nil))
			}
			c.Notify("vendor/note", nil)
			return json.Marshal(map[string]any{"content": []any{}, "refused": refused})
		}})
	}
	f.ApplySpecs([]Spec{httpSpec(t, "s", odd())})
	f.untilReady(t, "s", 0)
	c := f.converse(t, "s")
	result, events, err := f.passed(t, "s", c, "1", `{"name":"ask","_meta":{"progressToken":"mine"}}`)
	if want := []string{`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"mine","progress":1}}`, `{"jsonrpc":"2.0","method":"vendor/note"}`}; err != nil ||
		!strings.Contains(result, `["true","true"]`) || !slices.Equal(events, want) {
		t.Errorf("%s %q %v", result, events, err)
	}
}

// TestSessionInAnotherVersion: a client whose version a server rejects gets a session in the one that the server names.
func TestSessionInAnotherVersion(t *testing.T) {
	t.Parallel()
	inner := mcptest.New(mcptest.Options{Protocol: "2024-11-05"}, askTool())
	url := mcptest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if m, _ := wirejson.ParseServerMessage(body); m.Method == mcp.Initialize && !bytes.Contains(body, []byte("2024-11-05")) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"Unsupported protocol version","data":{"supported":["2024-11-05"]}}}`, m.ID)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		inner.ServeHTTP(w, r)
	})).URL
	f := newFixture(t)
	f.ApplySpecs([]Spec{{Name: "s", Transport: HTTP, URL: url}})
	f.untilReady(t, "s", 0)
	if result, _, err := f.passed(t, "s", f.converse(t, "s"), "1", `{"name":"ask","arguments":{"n":7}}`); err != nil || !strings.Contains(result, "accept") {
		t.Errorf("%s %v", result, err)
	}
}

// TestServerThatPingsFirst checks that clients can use, in their own sessions, a stdio server that answers initialize
// only after its ping was answered.
func TestServerThatPingsFirst(t *testing.T) {
	t.Parallel()
	const script = `while read -r line; do
id=$(printf %s "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
case $line in
*'"initialize"'*) echo '{"jsonrpc":"2.0","id":"p","method":"ping"}'; read -r pong
	echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}';;
*'"tools/list"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"tools":[{"name":"ask","inputSchema":{"type":"object"}}]}}';;
*'"tools/call"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"content":[]}}';;
*'"id"'*) echo '{"jsonrpc":"2.0","id":'$id',"error":{"code":-32601,"message":"no"}}';;
esac; done`
	f := newFixture(t)
	f.ApplySpecs([]Spec{{Name: "s", Transport: Stdio, Command: "/bin/sh", Args: []string{"-c", script}}})
	f.untilReady(t, "s", 0)
	if result, _, err := f.passed(t, "s", f.converse(t, "s"), "1", `{"name":"ask"}`); err != nil || result != `{"content":[]}` {
		t.Errorf("%s %v", result, err)
	}
}
