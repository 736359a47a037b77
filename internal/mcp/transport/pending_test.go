package transport

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func enter(p *pendingRequests, s sentRequest) (*pendingRequest, error) {
	e := p.newUnregistered()
	e.sentRequest = s
	return e, p.register(e)
}

// said delivers a log message to the only open request, and reports whether that request wants it.
func said(p *pendingRequests, params json.RawMessage) bool {
	return p.deliverToOnlyRequest(session.Event{Method: mcp.LogMessage, Params: params})
}

// TestBrokenAnswers checks that a malformed response ends its request after a while, unless a correct one follows, and
// that the request still counts as running at the server.
func TestBrokenAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const broken = `{"jsonrpc":"2.0","id":%d,"result":{"a":`
		p := newPendingRequests()
		ask := func(id uint64, owner *session.ClientRef) *pendingRequest {
			e, err := enter(p, sentRequest{id: id, Request: &session.Request{Owner: owner, Say: func(session.Event) {}}})
			if err != nil {
				t.Fatal(err)
			}
			return e
		}
		wait := func(e *pendingRequest) (string, error) {
			reply, err := p.waitForReply(t.Context(), e)
			return string(reply.Result), err
		}
		first, second, third := ask(1, &session.ClientRef{}), ask(2, &session.ClientRef{}), ask(3, &session.ClientRef{})
		for range 2 {
			p.failAfterMalformedReply(fmt.Appendf(nil, broken, 1))
			p.failAfterMalformedReply(fmt.Appendf(nil, broken, 2))
		}
		p.deliverReply(&wirejson.Message{ID: json.RawMessage("2"), Result: json.RawMessage(`{"b":2}`)}, false)
		began := time.Now()
		if _, err := wait(first); !errors.Is(err, ErrNoMessage) || time.Since(began) != malformedWait {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		if got, err := wait(second); err != nil || got != `{"b":2}` {
			t.Errorf("%s, %v", got, err)
		}
		if said(p, json.RawMessage(`{"level":"info","data":"about the first"}`)) {
			t.Error("a message that may belong to the first request was delivered to another client")
		}
		p.failAfterMalformedReply(fmt.Appendf(nil, broken, 3))
		p.failAll(ErrStopped)
		if _, err := wait(third); errors.Is(err, ErrNoMessage) || !errors.Is(err, ErrStopped) {
			t.Errorf("the end of the link delivered another result: %v", err)
		}
	})
}

// TestErrorsWithoutAnID checks that an error without an ID is delivered to the only tool call, unless another response
// follows.
func TestErrorsWithoutAnID(t *testing.T) {
	fails := func(code int) *wirejson.Message {
		return &wirejson.Message{ID: json.RawMessage("null"), Error: &wirejson.RPCError{Code: code, Message: "gone"}}
	}
	call, list := session.Request{Method: mcp.CallTool}, session.Request{Method: mcp.ListTools}
	for name, c := range map[string]struct {
		open   []session.Request
		code   int
		follow bool
		failed bool
	}{
		"a call":                            {[]session.Request{call}, -32000, false, true},
		"a call that has its response":      {[]session.Request{call}, -32000, true, false},
		"two calls":                         {[]session.Request{call, call}, -32000, false, false},
		"a list":                            {[]session.Request{list}, -32000, false, false},
		"an unknown method: a notification": {[]session.Request{call}, wirejson.CodeMethodNotFound, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPendingRequests()
				var first *pendingRequest
				for i, r := range c.open {
					e, err := enter(p, sentRequest{id: uint64(i + 1), Request: &r})
					if err != nil {
						t.Fatal(err)
					}
					if i == 0 {
						first = e
					}
				}
				p.deliverReply(fails(c.code), false)
				if c.follow {
					p.deliverReply(&wirejson.Message{ID: json.RawMessage("1"), Result: json.RawMessage(`{}`)}, false)
				}
				time.Sleep(2 * malformedWait)
				p.failAll(ErrStopped)
				reply, _ := p.waitForReply(t.Context(), first)
				if failed := reply.Error != nil && reply.Error.Message == "gone"; failed != c.failed {
					t.Errorf("got %+v", reply)
				}
			})
		})
	}
}

func TestPendingIsBounded(t *testing.T) {
	p := newPendingRequests()
	got := 0
	e, err := enter(p, sentRequest{id: 1, token: json.RawMessage("1"), Request: &session.Request{Call: &session.ToolCall{}, Say: func(session.Event) { got++ }}})
	if err != nil {
		t.Fatal(err)
	}
	for range 10 * maxEvents {
		p.deliverProgress(session.Event{Method: mcp.Progress, Params: json.RawMessage(`{"progressToken":1}`)}, nil)
	}
	big := json.RawMessage(`{"x":"` + strings.Repeat("y", maxEventBytes) + `"}`)
	said(p, big)
	p.deliverReply(&wirejson.Message{ID: json.RawMessage("1"), Result: json.RawMessage("{}")}, false)
	if r, err := p.waitForReply(t.Context(), e); err != nil || string(r.Result) != "{}" {
		t.Errorf("result %s, error %v", r.Result, err)
	}
	if got != maxEvents {
		t.Errorf("got %d notifications", got)
	}
}

func TestPendingIgnoresStrangeIDs(t *testing.T) {
	p := newPendingRequests()
	e, err := enter(p, sentRequest{id: 7, Request: &session.Request{}})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{`"07"`, `"7x"`, `" 7"`, `""`, `7.0`, `-7`, `07x`, `null`, ``, `8`, `99999999999999999999999`} {
		p.deliverReply(&wirejson.Message{ID: json.RawMessage(id), Result: json.RawMessage("{}")}, false)
	}
	if p.countInFlight() != 1 {
		t.Error("the request was resolved")
	}
	p.failAll(errors.New("over"))
	if _, err := p.waitForReply(context.Background(), e); err == nil {
		t.Error("got no error")
	}
	if _, err := enter(p, sentRequest{id: 8, Request: &session.Request{}}); !session.IsNotSent(err) {
		t.Errorf("error %v", err)
	}
}

func TestAppendCall(t *testing.T) {
	tests := []struct{ call, want, token string }{
		{`{"Tool":"a"}`, `{"name":"a"}`, ""},
		{`{"Tool":"a","Arguments":{"x":[1, 2]}}`, `{"name":"a","arguments":{"x":[1, 2]}}`, ""},
		{`{"Tool":"a\"b\\c\u0001é","Meta":{}}`, `{"name":"a\"b\\c\u0001é","_meta":{}}`, ""},
		{`{"Tool":"a","Meta":{"progressToken":"t","x":1}}`, `{"name":"a","_meta":{"progressToken":5,"x":1}}`, `"t"`},
		{`{"Tool":"a","Meta":{"progressToken":0}}`, `{"name":"a","_meta":{"progressToken":5}}`, `0`},
	}
	for _, tt := range tests {
		in := struct {
			Tool            string
			Arguments, Meta json.RawMessage
		}{}
		if err := json.Unmarshal([]byte(tt.call), &in); err != nil {
			t.Fatal(err)
		}
		var ids atomic.Uint64
		ids.Store(4)
		var s sentRequest
		msg := s.encodeRequest(nil, &session.Request{Method: mcp.CallTool, Call: &session.ToolCall{Tool: in.Tool, Arguments: in.Arguments, Meta: in.Meta}}, &LinkOptions{IDs: &ids}, false, false)
		token := s.token
		if want := `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":` + tt.want + `}`; string(msg) != want || string(token) != tt.token {
			t.Errorf("%s, token %s; want %s", msg, token, want)
		}
	}
}

// TestSubscriptionsThatEnd checks that an ended subscription does not count as a request that still runs.
func TestSubscriptionsThatEnd(t *testing.T) {
	p := newPendingRequests()
	give := func(s sentRequest) bool {
		t.Helper()
		e, err := enter(p, s)
		if err != nil {
			t.Fatal(err)
		}
		given := said(p, json.RawMessage("{}"))
		p.removeEnded(e, context.Canceled)
		return given
	}
	say := func(session.Event) {}
	give(sentRequest{id: 1, listenID: json.RawMessage("1"), Request: &session.Request{Say: say}})
	if !give(sentRequest{id: 2, Request: &session.Request{Say: say}}) {
		t.Error("a message was withheld because of an ended subscription")
	}
	if give(sentRequest{id: 3, Request: &session.Request{Say: say}}) {
		t.Error("a message was delivered although a request was abandoned")
	}
}

// TestOrphansAreBounded checks that only a limited number of abandoned calls is stored, and that calls beyond that
// number count as calls of another client.
func TestOrphansAreBounded(t *testing.T) {
	var d orphanedRequests
	a, b := &session.ClientRef{}, &session.ClientRef{}
	for id := range uint64(maxOrphans) {
		d.addRequest(&sentRequest{id: id, Request: &session.Request{Owner: a}})
	}
	if d.hasOtherOwner(&sentRequest{Request: &session.Request{Owner: a}}) || !d.hasOtherOwner(&sentRequest{Request: &session.Request{Owner: b}}) {
		t.Error("the owner of the orphans is unknown")
	}
	for id := range uint64(10 * maxOrphans) {
		d.addRequest(&sentRequest{id: id + maxOrphans, Request: &session.Request{Owner: b}})
	}
	if len(d.all) != maxOrphans || !d.hasOtherOwner(&sentRequest{Request: &session.Request{Owner: b}}) {
		t.Errorf("%d orphans are stored, or calls beyond the limit do not count as calls of another client", len(d.all))
	}
}
