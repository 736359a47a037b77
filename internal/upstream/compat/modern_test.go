//go:build unix

package compat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/transport"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/testutil/mcptest"
)

// askModern makes a call of a modern client; more are members of its params.
func (f *fixture) askModern(ctx context.Context, server, principal string, n int, more string) (Reply, []string, error) {
	var events []string
	params := fmt.Sprintf(`{"name":"ask","arguments":{"n":%d}%s,"_meta":{"progressToken":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28",`+
		`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}},"io.modelcontextprotocol/logLevel":"info"}}`, n, more)
	reply, err := f.Call(ctx, server, Call{Tool: "ask", Passed: &Passed{Request: session.Request{ID: json.RawMessage("1"), Caller: named(principal),
		Method: mcp.CallTool, Params: json.RawMessage(params), Say: func(e session.Event) { events = append(events, string(e.AppendMessage(nil))) }}}})
	return reply, events, err
}

// TestModernClientOnLegacyServer: the client gets the server's requests as input that it must return with the next
// request. Requests that the server sends during one client's call do not reach other clients.
func TestModernClientOnLegacyServer(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.ApplySpecs([]Spec{stdioSpec(t, "pipe", "asker"), httpSpec(t, "http", asker())})
	for server, clients := range map[string]int{"pipe": 3, "http": 16} {
		f.untilReady(t, server, 0)
		var wg sync.WaitGroup
		for n := range clients {
			wg.Go(func() {
				first, events, err := f.askModern(t.Context(), server, "me", n, "")
				message, _ := wirejson.String(wirejson.Find(wirejson.Find(wirejson.Find(wirejson.Find(first.Result, "inputRequests"), "input-1"), "params"), "message"))
				if err != nil || !isInputRequired(first.Result) || message != fmt.Sprint(n) || len(events) != 2 {
					t.Errorf("%s: %s %q %v", server, first.Result, events, err)
					return
				}
				state := string(wirejson.Find(first.Result, "requestState"))
				come := func(principal string, n int, more string) Reply {
					reply, _, err := f.askModern(t.Context(), server, principal, n, `,"requestState":`+state+more)
					if err != nil {
						t.Errorf("%s: %v", server, err)
					}
					return reply
				}
				answer := fmt.Sprintf(`,"inputResponses":{"input-1":{"action":"accept","content":{"n":%d}},"other":{}}`, n)
				for what, r := range map[string]session.Reply{"somebody else": come("you", n, answer), "another request": come("me", n+1000, answer)} {
					if r.Error == nil || r.Error.Code != wirejson.CodeInvalidParams {
						t.Errorf("%s: %s goes on: %s", server, what, r.Result)
					}
				}
				again := come("me", n, "")
				if !isInputRequired(again.Result) || string(wirejson.Find(again.Result, "requestState")) == state {
					t.Errorf("%s: without an answer: %s", server, again.Result)
				}
				state = string(wirejson.Find(again.Result, "requestState"))
				last := come("me", n, answer)
				if want := fmt.Sprintf(`"answer":{"action":"accept","content":{"n":%d}}`, n); !strings.Contains(string(last.Result), want) ||
					!strings.Contains(string(last.Result), `"resultType":"complete"`) {
					t.Errorf("%s: %s", server, last.Result)
				}
				if r := come("me", n, answer); r.Error == nil {
					t.Errorf("%s: a state is accepted twice: %s", server, r.Result)
				}
			})
		}
		wg.Wait()
	}
}

// TestHeldRequestsEnd: a client that closes its request cancels it, and held requests end with their server.
func TestHeldRequestsEnd(t *testing.T) {
	t.Parallel()
	s := mcptest.New(mcptest.Options{}, askTool())
	f := newFixture(t)
	f.ApplySpecs([]Spec{httpSpec(t, "s", s)})
	f.untilReady(t, "s", 0)
	if r, _, err := f.askModern(t.Context(), "s", "me", 1, ""); err != nil || !isInputRequired(r.Result) {
		t.Fatalf("%s %v", r.Result, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r := session.Request{ID: json.RawMessage("1"), Method: "tools/unknown", Params: json.RawMessage(`{}`)}
	if a, err := f.Relay(ctx, "s", nil, r); err != nil || a.Error == nil || a.Error.Code != wirejson.CodeMethodNotFound {
		t.Errorf("%+v %v", a, err)
	}
	cancel()
	if _, err := f.Relay(ctx, "s", nil, r); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	f.ApplySpecs(nil) // the fixture waits for the end of everything
}

// TestModernDescriptionOfLegacyServer: server/discover describes a legacy server.
func TestModernDescriptionOfLegacyServer(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.ApplySpecs([]Spec{stdioSpec(t, "s", "asker")})
	f.untilReady(t, "s", 0)
	a, err := f.Relay(t.Context(), "s", nil, session.Request{ID: json.RawMessage("1"), Method: mcp.Discover, Params: json.RawMessage(`{}`)})
	for _, want := range []string{`"supportedVersions":["2026-07-28","2025-11-25"`, `"resultType":"complete"`, `"ttlMs":0`, `"cacheScope":"private"`,
		`"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"fake"`} {
		if err != nil || !strings.Contains(string(a.Result), want) {
			t.Errorf("no %s in %s %v", want, a.Result, err)
		}
	}
}

// TestListsDependOnTheClient: a list that a server gives only to clients with certain capabilities reaches such a client,
// although the server cannot ask it anything during the request.
func TestListsDependOnTheClient(t *testing.T) {
	t.Parallel()
	script := `while read -r a; do id=${a#*'"id":'}; id=${id%%,*}; case $a in
*server/discover*) echo '{"jsonrpc":"2.0","id":'$id',"error":{"code":-32601,"message":"?"}}' ;;
*'"initialize"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}'; init=$a ;;
*tools/list*) case $init in
	*'"roots"'*) list=$id; echo '{"jsonrpc":"2.0","id":"r","method":"roots/list"}' ;;
	*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"tools":[]}}' ;; esac ;;
*'"id":"r","error"'*) echo '{"jsonrpc":"2.0","id":'$list',"result":{"tools":[{"name":"theirs"}]}}' ;;
*tools/call*) echo '{"jsonrpc":"2.0","id":"q","method":"roots/list"}' ;;
esac; done`
	f := newFixture(t)
	f.ApplySpecs([]Spec{{Name: "s", Transport: Stdio, Command: "sh", Args: []string{"-c", script}}})
	f.untilReady(t, "s", 0)
	list := func(capabilities string) string {
		a, err := f.Relay(t.Context(), "s", nil, session.Request{ID: json.RawMessage("1"), Method: mcp.ListTools, Params: json.RawMessage(
			`{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":` + capabilities + `}}`)})
		if err != nil {
			t.Error(err)
		}
		return string(a.Result)
	}
	if got := list(`{}`); !strings.Contains(got, `"tools":[]`) {
		t.Errorf("to a client without the capability: %s", got)
	}
	for range 2 {
		if got := list(`{"roots":{}}`); !strings.Contains(got, `"tools":[{"name":"theirs"}]`) {
			t.Errorf("to a client with the capability: %s", got)
		}
	}
	reply, err := f.Call(t.Context(), "s", Call{Tool: "theirs", Passed: &Passed{Request: session.Request{ID: json.RawMessage("1"), Method: mcp.CallTool, Params: json.RawMessage(
		`{"name":"theirs","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"roots":{}}}}`)}}})
	if err != nil || !isInputRequired(reply.Result) {
		t.Errorf("the call does not ask: %s %v", reply.Result, err)
	}
}

// TestOnlyThreeMethodsAsk: a server that asks its client right from the start can do so only in the requests that may return
// questions.
func TestOnlyThreeMethodsAsk(t *testing.T) {
	t.Parallel()
	script := `while read -r a; do id=${a#*'"id":'}; id=${id%%,*}; case $a in
*server/discover*) echo '{"jsonrpc":"2.0","id":'$id',"error":{"code":-32601,"message":"?"}}' ;;
*'"initialize"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}'; init=$a ;;
*initialized*) case $init in *'"roots"'*) echo '{"jsonrpc":"2.0","id":"r","method":"roots/list"}' ;; esac ;;
*'"id":"r"'*) echo '{"jsonrpc":"2.0","id":'$call',"result":{"content":[]}}' ;;
*tools/list*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"tools":[{"name":"ask"}]}}' ;;
*tools/call*) call=$id ;;
esac; done`
	f := newFixture(t)
	f.ApplySpecs([]Spec{{Name: "s", Transport: Stdio, Command: "sh", Args: []string{"-c", script}}})
	f.untilReady(t, "s", 0)
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"roots":{}}}}`
	a, err := f.Relay(t.Context(), "s", nil, session.Request{ID: json.RawMessage("1"), Method: mcp.ListTools, Params: json.RawMessage("{" + meta)})
	if err != nil || !strings.Contains(string(a.Result), `"tools":[{"name":"ask"}]`) {
		t.Errorf("%s %v", a.Result, err)
	}
	call := func(more string) Reply {
		reply, err := f.Call(t.Context(), "s", Call{Tool: "ask", Passed: &Passed{Request: session.Request{ID: json.RawMessage("1"),
			Method: mcp.CallTool, Params: json.RawMessage(`{"name":"ask",` + more + meta)}}})
		if err != nil {
			t.Error(err)
		}
		return reply
	}
	first := call("")
	if !strings.Contains(string(first.Result), `"inputRequests":{"input-1":{"method":"roots/list","params":{}}}`) {
		t.Fatalf("%s", first.Result)
	}
	last := call(`"requestState":` + string(wirejson.Find(first.Result, "requestState")) + `,"inputResponses":{"input-1":{"roots":[]}},`)
	if !strings.Contains(string(last.Result), `"content":[]`) {
		t.Errorf("%s", last.Result)
	}
}

// TestStreamContainsOnlyItsRequest: the stream of a modern request contains messages about that request only, not other
// messages of the session that MCPProxy uses for it.
func TestStreamContainsOnlyItsRequest(t *testing.T) {
	t.Parallel()
	s := mcptest.New(mcptest.Options{}, chatterTool())
	f := newFixture(t)
	f.ApplySpecs([]Spec{httpSpec(t, "http", s), stdioSpec(t, "pipe", "chatter")})
	for _, server := range []string{"http", "pipe"} {
		f.untilReady(t, server, 0)
		for range 2 { // the second in the session of the first
			var events []string
			params := `{"name":"chatter","_meta":{"progressToken":"mine","io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
				`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}},"io.modelcontextprotocol/logLevel":"info"}}`
			reply, err := f.Call(t.Context(), server, Call{Tool: "chatter", Passed: &Passed{Request: session.Request{ID: json.RawMessage("1"), Caller: named("me"),
				Method: mcp.CallTool, Params: json.RawMessage(params), Say: func(e session.Event) { events = append(events, string(e.AppendMessage(nil))) }}}})
			if err != nil || !strings.Contains(string(reply.Result), `"content":[]`) {
				t.Fatalf("%s: %s %v", server, reply.Result, err)
			}
			want := []string{
				`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"about it"}}`,
				`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"mine","progress":1}}`,
				`{"jsonrpc":"2.0","method":"vendor/thing"}`,
			}
			if !slices.Equal(events, want) {
				t.Errorf("%s:\n%s", server, strings.Join(events, "\n"))
			}
		}
	}
}

// chatterTool sends many messages that are not about its call, and a few that are.
func chatterTool() mcptest.Tool {
	return mcptest.Tool{Definition: mcptest.ToolDefinition("chatter"), Handle: func(c *mcptest.Call) (json.RawMessage, error) {
		for _, method := range []string{mcp.ToolsChanged, mcp.PromptsChanged, mcp.ResourcesChanged, "notifications/resources/updated",
			"notifications/tasks/status", "notifications/tasks", "notifications/cancelled", "notifications/elicitation/complete", mcp.Acknowledged} {
			c.Notify(method, json.RawMessage(`{"uri":"a:b","requestId":77}`))
		}
		c.SendLogMessage("about it")
		c.Notify(mcp.Progress, json.RawMessage(`{"progressToken":"another's","progress":1}`))
		c.SendProgress(1)
		c.Notify("vendor/thing", nil)
		return json.RawMessage(`{"content":[]}`), nil
	}}
}

// TestUnreadableAnswerFailsOneCall: a call with an unreadable response fails, and the process keeps running, because the
// server has nothing more to send for the call.
func TestUnreadableAnswerFailsOneCall(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.ApplySpecs([]Spec{stdioSpec(t, "s", "zoo")})
	f.untilReady(t, "s", 0)
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	legacy := f.converse(t, "s")
	ask := func(c *Session, name, more string) (session.Reply, error) {
		return f.Call(t.Context(), "s", Call{Tool: name, Passed: &Passed{Session: c, Request: session.Request{ID: json.RawMessage("1"),
			Method: mcp.CallTool, Params: json.RawMessage(`{"name":"` + name + `","arguments":{"n":5000}` + more + `}`)}}})
	}
	for what, call := range map[string]func(name string) (session.Reply, error){
		"modern": func(name string) (session.Reply, error) { return ask(nil, name, ","+meta) },
		"legacy": func(name string) (session.Reply, error) { return ask(legacy, name, "") },
	} {
		first, err := call("pid")
		if err != nil {
			t.Fatal(what, err)
		}
		if _, err := call("deep"); problem.From(err).Code != problem.UpstreamError || !errors.Is(err, transport.ErrNoMessage) {
			t.Errorf("%s: %v", what, err)
		}
		if again, err := call("pid"); err != nil || string(again.Result) != string(first.Result) {
			t.Errorf("%s: it was %s, is %s, %v", what, first.Result, again.Result, err)
		}
	}
}

// TestLateProgressOfAnotherRequest: progress that a server reports late, for an earlier request with the same token, does not
// reach a later one.
func TestLateProgressOfAnotherRequest(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var earlier json.RawMessage
	f.ApplySpecs([]Spec{httpSpec(t, "s", mcptest.New(mcptest.Options{}, mcptest.Tool{Definition: mcptest.ToolDefinition("ask"), Handle: func(c *mcptest.Call) (json.RawMessage, error) {
		if earlier != nil {
			c.Notify("notifications/progress", json.RawMessage(`{"progressToken":`+string(earlier)+`,"progress":99}`))
		}
		earlier = slices.Clone(transport.ProgressTokenOf(c.Params))
		c.SendProgress(1)
		return json.RawMessage(`{"content":[]}`), nil
	}}))})
	f.untilReady(t, "s", 0)
	for range 2 {
		reply, events, err := f.askModern(t.Context(), "s", "me", 1, "")
		if err != nil || reply.Result == nil || len(events) != 1 || !strings.Contains(events[0], `{"progressToken":1,"progress":1}`) {
			t.Errorf("%s %q %v", reply.Result, events, err)
		}
	}
}

// TestUndeclaredQuestions: a server that asks for something that the client has not declared gets an error, and the client
// gets the result.
func TestUndeclaredQuestions(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.ApplySpecs([]Spec{httpSpec(t, "s", mcptest.New(mcptest.Options{}, mcptest.Tool{Definition: mcptest.ToolDefinition("ask"), Handle: func(c *mcptest.Call) (json.RawMessage, error) {
		var all []string
		for _, method := range []string{"roots/list", "sampling/createMessage", "vendor/ask", "ping"} {
			answer, err := c.SendRequest(method, nil)
			if err != nil {
				return nil, err
			}
			all = append(all, fmt.Sprint(answer.Error != nil))
		}
		return json.Marshal(map[string]any{"content": []any{}, "refused": all})
	}}))})
	f.untilReady(t, "s", 0)
	if reply, _, err := f.askModern(t.Context(), "s", "me", 1, ""); err != nil || !strings.Contains(string(reply.Result), `["true","true","true","false"]`) {
		t.Errorf("%s %v", reply.Result, err)
	}
}
