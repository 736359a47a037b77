package gate

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/testutil/catalogtest"
)

const hello = `{"protocolVersion":"2025-03-26","capabilities":{"roots":{}},"clientInfo":{"name":"c","version":"1"}}`

// aggregateClient is a legacy client of all servers together.
type aggregateClient struct {
	*aggregateWorld
	*catalogtest.ScriptedServers
	session.Session
}

func newClient(t *testing.T) *aggregateClient {
	t.Helper()
	w, r := allWorld(t, nil, aggregateReads, `{"name":"other"}`)
	s, a, err := w.all.OpenSession(t.Context(), catalogtest.NewRequest("initialize", hello))
	if err != nil || s == nil || !strings.HasPrefix(string(a.Result), `{"protocolVersion":"2025-03-26","capabilities":{"tools":{"listChanged":true},`) {
		t.Fatalf("%s %v", a.Result, err)
	}
	return &aggregateClient{w, r, s}
}

func (c *aggregateClient) ask(method, params string) session.Reply {
	c.T.Helper()
	a, err := c.Do(c.T.Context(), catalogtest.NewRequest(method, params))
	if err != nil {
		c.T.Fatal(err)
	}
	return a
}

// TestSessionWithEachServer checks that each server gets its own session at its first use, with the log level and the
// roots of the client, and a new session when that one ends.
func TestSessionWithEachServer(t *testing.T) {
	c := newClient(t)
	if len(c.Sessions) != 0 {
		t.Fatal("a server received a message before its first use")
	}
	if a := c.ask("logging/setLevel", `{"level":"info"}`); string(a.Result) != `{}` {
		t.Errorf("%+v", a)
	}
	if a := c.ask("logging/setLevel", `{"level":"loud"}`); a.Error == nil || a.Error.Code != wirejson.CodeInvalidParams {
		t.Errorf("%+v", a)
	}
	for _, params := range []string{`{"name":"s__reads","arguments":{"a":1}}`, `{"name":"s__other"}`} {
		if a := c.ask("tools/call", params); a.Error != nil {
			t.Errorf("%s: %v", params, a.Error)
		}
	}
	if a := c.ask("resources/read", `{"uri":"mcpproxy://t/x"}`); a.Error != nil {
		t.Error(a.Error)
	}
	if len(c.Sessions) != 2 || c.Sessions[0].Server != "s" || c.Sessions[1].Server != "t" {
		t.Fatalf("%d sessions", len(c.Sessions))
	}
	if want := []string{`s {"level":"info"}`, `t {"level":"info"}`, `t {"uri":"x"}`}; !slices.Equal(c.Sent, want) {
		t.Errorf("the servers received %q", c.Sent)
	}
	c.Events = nil
	if err := c.NotifyServer(t.Context(), "notifications/roots/list_changed", nil); err != nil {
		t.Error(err)
	}
	if err := c.NotifyServer(t.Context(), "notifications/cancelled", nil); err != nil {
		t.Error(err)
	}
	if want := []string{"notify notifications/roots/list_changed", "notify notifications/roots/list_changed"}; !slices.Equal(c.Events, want) {
		t.Errorf("events %q", c.Events)
	}
	c.Sessions[0].Close() // the server ends the session
	if a := c.ask("tools/call", `{"name":"s__other"}`); a.Error != nil || len(c.Sessions) != 3 || c.Sessions[2].Server != "s" {
		t.Errorf("%v, %d sessions", a.Error, len(c.Sessions))
	}
	c.Close()
	for i, s := range c.Sessions {
		select {
		case <-s.Done():
		default:
			t.Errorf("session %d did not end with its client", i)
		}
	}
	<-c.Done()
}

// TestAnswersReachTheAskingServer checks that the ID of a server's request identifies the server that gets the
// answer, unless its session has ended.
func TestAnswersReachTheAskingServer(t *testing.T) {
	c := newClient(t)
	c.AnswerCall = func(_ context.Context, r *session.Request) (session.Reply, error) {
		r.Say(session.Event{Method: "elicitation/create", ID: json.RawMessage(`7`)})
		return session.Reply{Result: json.RawMessage(`{"content":[]}`)}, nil
	}
	r := catalogtest.NewRequest("tools/call", `{"name":"s__other"}`)
	var id json.RawMessage
	r.Say = func(e session.Event) { id = e.ID }
	if _, err := c.Do(t.Context(), r); err != nil || string(id) != `"s:7"` {
		t.Fatalf("%s %v", id, err)
	}
	c.Events = nil
	for _, id := range []string{`"s:7"`, `"t:7"`, `"nobody:7"`, `7`} {
		if err := c.AnswerServerQuestion(t.Context(), json.RawMessage(id), session.Reply{}); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	if !slices.Equal(c.Events, []string{"respond 7"}) {
		t.Errorf("events %q", c.Events)
	}
	c.Sessions[0].Close()
	if err := c.AnswerServerQuestion(t.Context(), json.RawMessage(`"s:8"`), session.Reply{}); err != nil {
		t.Errorf("answer to a server whose session has ended: %v", err)
	}
}

// TestEndOfOneServersSession checks that the end of one server's session fails the request but does not end the
// client's session.
func TestEndOfOneServersSession(t *testing.T) {
	c := newClient(t)
	c.AnswerCall = func(context.Context, *session.Request) (session.Reply, error) {
		return session.Reply{}, session.ErrEnded
	}
	if got := code(c.ask("tools/call", `{"name":"s__other"}`)); got != problem.ServerUnavailable {
		t.Error(got)
	}
	if a := c.ask("ping", `{}`); string(a.Result) != `{}` {
		t.Errorf("%+v", a)
	}
	c.Reply = func(context.Context, *session.Request) (session.Reply, error) {
		return session.Reply{Status: 404, Error: &wirejson.RPCError{Code: -32002, Message: "gone"}}, nil
	}
	if a := c.ask("resources/read", `{"uri":"mcpproxy://t/x"}`); a.Error == nil || a.Status != 0 {
		t.Errorf("the reply ends the client's session: %+v", a)
	}
}

// TestForgottenSession covers a server that has forgotten the session that a client of /mcp/all has with it. The
// request is sent once more, in one new session, if it cannot have run. A call has one record.
func TestForgottenSession(t *testing.T) {
	for method, params := range map[string]string{"tools/call": `{"name":"s__other"}`, "resources/read": `{"uri":"mcpproxy://s/x"}`} {
		for name, err := range map[string]error{"unrun": &session.NotSentError{Cause: session.ErrEnded}, "lost": session.ErrEnded} {
			c := newClient(t)
			sends, forgets := 0, 1
			answer := func(context.Context, *session.Request) (session.Reply, error) {
				if sends++; sends > forgets {
					return session.Reply{Result: json.RawMessage(`{"content":[]}`)}, nil
				}
				c.Sessions[len(c.Sessions)-1].Close()
				return session.Reply{}, err
			}
			c.AnswerCall, c.Reply = answer, answer
			a := c.ask(method, params)
			if name == "lost" && (code(a) != problem.ServerUnavailable || sends != 1) || name == "unrun" && (a.Error != nil || sends != 2 || len(c.Sessions) != 2) {
				t.Errorf("%s %s: %+v, sent %d times in %d sessions", method, name, a, sends, len(c.Sessions))
			}
			sends, forgets = 0, 9
			if a := c.ask(method, params); code(a) != problem.ServerUnavailable || sends > 2 {
				t.Errorf("%s %s, again: %+v, sent %d times", method, name, a, sends)
			}
			if method == "tools/call" && len(c.Begun) != 2 {
				t.Errorf("%d records", len(c.Begun))
			}
		}
	}
}

// TestSessionsAreNotified checks that a session is notified of changes of the lists that it has read, and a
// subscription of the changes that it requested.
func TestSessionsAreNotified(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t)
		c.ask("tools/list", `{}`)
		c.SetTools(aggregateReads) // before the client listens
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var told []string
		go func() {
			_ = c.Listen(ctx, func(e session.Event) { told = append(told, e.Method) }, func() {})
		}()
		r := catalogtest.NewRequest("subscriptions/listen", `{"notifications":{"resourcesListChanged":true,"toolsListChanged":false,"x":1}}`)
		var subscribed []string
		r.Say = func(e session.Event) { subscribed = append(subscribed, fmt.Sprintf("%s %s", e.Method, e.Params)) }
		ended := make(chan session.Reply)
		go func() { ended <- c.do(ctx, r) }()
		synctest.Wait()
		if !slices.Equal(told, []string{"notifications/tools/list_changed"}) {
			t.Errorf("notifications before the client listened: %q", told)
		}
		const meta = `{"_meta":{"io.modelcontextprotocol/subscriptionId":1}`
		if !slices.Equal(subscribed, []string{`notifications/subscriptions/acknowledged ` + meta + `,"notifications":{"resourcesListChanged":true}}`}) {
			t.Errorf("acknowledged subscriptions: %q", subscribed)
		}
		told, subscribed = nil, nil
		for range 3 { // within one interval
			state := c.Catalog.Current().Server("t").State
			state.PrimitivesVersion++
			c.Catalog.StateChanged(state)
			c.Catalog.Publish()
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if !slices.Equal(told, []string{"notifications/prompts/list_changed", "notifications/resources/list_changed"}) {
			t.Errorf("notifications afterwards: %q", told)
		}
		if !slices.Equal(subscribed, []string{"notifications/resources/list_changed " + meta + "}"}) {
			t.Errorf("subscription notifications: %q", subscribed)
		}
		stop()
		if a := <-ended; !strings.HasPrefix(string(a.Result), `{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":1,`) {
			t.Errorf("the final result: %s", a.Result)
		}
	})
}

// TestInitializeIsBounded checks that the size of a client's initialize request, which is stored, is limited.
func TestInitializeIsBounded(t *testing.T) {
	c := newClient(t)
	s, a, err := c.all.OpenSession(t.Context(), catalogtest.NewRequest("initialize", `{"x":"`+strings.Repeat("x", maxInitializeBytes)+`"}`))
	if s != nil || err != nil || a.Error == nil || !strings.Contains(a.Error.Message, "65536 bytes") {
		t.Errorf("%v %v %v", s, a.Error, err)
	}
	for _, bad := range []string{`{"notifications":5}`, `{}`} { // the second request has no stream
		if a := c.do(t.Context(), catalogtest.NewRequest("subscriptions/listen", bad)); a.Error == nil || a.Error.Code != wirejson.CodeInvalidParams {
			t.Errorf("%s: %+v", bad, a)
		}
	}
}
