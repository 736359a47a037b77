package transport

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
)

// quietReporter receives the reports of a link and keeps the methods of questions.
type quietReporter struct {
	Reporter
	asked   []string
	refused int
}

func (r *quietReporter) QuestionAsked(method string)             { r.asked = append(r.asked, method) }
func (r *quietReporter) QuestionRefused()                        { r.refused++ }
func (*quietReporter) Notification(string, json.RawMessage) bool { return false }

// askingLink is a shared link whose stream the test writes, and which keeps the messages to the server.
type askingLink struct {
	*duplex
	reports *quietReporter
	sent    []string
}

func newAskingLink() *askingLink {
	l := &askingLink{reports: &quietReporter{}}
	l.duplex = newDuplex(LinkOptions{Reports: l.reports, Asks: true})
	l.postLater = func(msg []byte) { l.sent = append(l.sent, string(msg)) }
	l.post = func(_ context.Context, msg []byte) error { l.postLater(msg); return nil }
	l.allowQuestions()
	return l
}

// open registers a request of a client. heard gets the questions of the client.
func (l *askingLink) open(t *testing.T, id uint64, owner *session.ClientRef, heard *[]string) *pendingRequest {
	t.Helper()
	r := &session.Request{Method: mcp.CallTool, Owner: owner}
	if heard != nil {
		r.Say = func(e session.Event) { *heard = append(*heard, string(e.ID)+" "+e.Method) }
	}
	e, err := enter(l.pending, sentRequest{id: id, Request: r})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// ask lets the server ask a question.
func (l *askingLink) ask(id, method, params string) {
	l.routeMessage(&wirejson.Message{ID: json.RawMessage(id), Method: method, Params: json.RawMessage(params)}, false)
}

// end ends a request with an answer, or cancels it, and delivers its events.
func (l *askingLink) end(e *pendingRequest, cancelled bool) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if cancelled {
		cancel()
	} else {
		l.pending.deliverReply(&wirejson.Message{ID: json.RawMessage(e.wireID()), Result: json.RawMessage("{}")}, false)
	}
	_, _ = l.pending.waitForReply(ctx, e)
}

// wants checks the messages to the server since the last call.
func (l *askingLink) wants(t *testing.T, why string, want ...string) {
	t.Helper()
	got := l.sent
	l.sent = nil
	if len(got) != len(want) {
		t.Errorf("%s: the server got %q, want %q", why, got, want)
		return
	}
	for i := range want {
		if !strings.Contains(got[i], want[i]) {
			t.Errorf("%s: the server got %s, want %s", why, got[i], want[i])
		}
	}
}

const notDeclared = `"code":-32601`

// TestQuestionIsAttributed: a question on a stream for all messages reaches a client only if all requests in flight are of
// that client. Each question is answered once.
func TestQuestionIsAttributed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newAskingLink()
		var a, b []string
		alice, bob := &session.ClientRef{}, &session.ClientRef{}
		l.ask(`"0"`, mcp.Elicit, "{}")
		l.wants(t, "no request is in flight", notDeclared)

		one := l.open(t, 1, alice, &a)
		l.ask("7", mcp.Elicit, "{}")
		l.ask("7", mcp.Elicit, "{}")
		l.wants(t, "an ID that is in use", notDeclared)
		l.ask("8", "roots/list", "{}")
		l.ask("9", mcp.Elicit, `{"mode":"url"}`)
		l.ask("10", "other/request", "{}")
		l.wants(t, "questions that are not about a request", notDeclared, notDeclared, notDeclared)
		asked := len(l.reports.asked)
		l.ask("16", "roots/list", "{}")
		l.wants(t, "a second question for roots", notDeclared)
		if slices.Contains(l.reports.asked[:asked], "roots/list") || l.reports.asked[asked] != "roots/list" {
			t.Errorf("reported: %q; want roots with the second question", l.reports.asked)
		}
		if l.reports.refused != 4 { // all that no client got, without the first for roots
			t.Errorf("%d refused questions are reported", l.reports.refused)
		}
		l.ask("11", mcp.Ping, "")
		l.wants(t, "a ping", `"result":{}`)
		_ = l.AnswerServerQuestion(t.Context(), json.RawMessage("7"), session.Reply{Result: json.RawMessage(`{"x":1}`)})
		l.wants(t, "the answer", `"result":{"x":1}`)
		_ = l.AnswerServerQuestion(t.Context(), json.RawMessage("7"), session.Reply{Result: json.RawMessage(`{"x":2}`)})
		l.wants(t, "a second answer")

		newer := l.open(t, 2, alice, &a)
		l.ask("12", mcp.Elicit, "{}")
		l.wants(t, "two requests of one client")
		other := l.open(t, 3, bob, &b)
		l.ask("13", mcp.Elicit, "{}")
		l.wants(t, "requests of two clients", notDeclared)
		l.end(newer, false)
		l.wants(t, "an open question when its request ends", `"id":12,"error"`)
		_ = l.AnswerServerQuestion(t.Context(), json.RawMessage("12"), session.Reply{Result: json.RawMessage(`{}`)})
		l.wants(t, "an answer after the end")
		l.end(one, false)
		if !slices.Equal(a, []string{"12 " + mcp.Elicit, "7 " + mcp.Elicit}) || b != nil {
			t.Errorf("the clients got %q and %q", a, b)
		}

		ping := l.open(t, 4, nil, nil)
		ping.Request = &session.Request{Method: mcp.Ping}
		l.ask("14", mcp.Elicit, "{}")
		l.wants(t, "next to a ping of MCPProxy")
		list := l.open(t, 5, nil, nil)
		l.ask("15", mcp.Elicit, "{}")
		l.wants(t, "next to a request without a client", notDeclared)
		l.end(list, false)
		l.routeMessage(&wirejson.Message{Method: mcp.Cancelled, Params: json.RawMessage(`{"requestId":14}`)}, false)
		l.end(other, false)
		l.wants(t, "a question that the server has withdrawn")
		if !slices.Equal(b, []string{"14 " + mcp.Elicit, " " + mcp.Cancelled}) {
			t.Errorf("the client got %q", b)
		}
	})
}

// TestQuestionAfterCancellation: a cancelled request may still ask, for as long as it is not answered. Only its own client may
// get a question then.
func TestQuestionAfterCancellation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newAskingLink()
		var a, b []string
		alice, bob := &session.ClientRef{}, &session.ClientRef{}
		gone := l.open(t, 1, alice, &a)
		l.ask("1", mcp.Elicit, "{}")
		l.end(gone, true)
		l.wants(t, "a question when its request is cancelled", `"id":1,"error"`)
		time.Sleep(10 * orphanTime) // in the time of synctest
		theirs := l.open(t, 2, bob, &b)
		l.ask("2", mcp.Elicit, "{}")
		l.wants(t, "a question that may be about the cancelled request", notDeclared)
		l.pending.hasExpired()
		l.ask("3", mcp.Elicit, "{}")
		l.wants(t, "after the list of cancelled requests was cleaned", notDeclared)
		l.end(theirs, false)
		own := l.open(t, 3, alice, &a)
		l.ask("4", mcp.Elicit, "{}")
		l.end(own, false)
		l.wants(t, "a question of the same client", `"id":4,"error"`)

		l = newAskingLink()
		gone, theirs = l.open(t, 1, alice, &a), l.open(t, 2, bob, &b)
		l.end(gone, true)
		l.pending.deliverReply(&wirejson.Message{ID: json.RawMessage("1"), Result: json.RawMessage("{}")}, false)
		l.ask("5", mcp.Elicit, "{}")
		l.end(theirs, false)
		l.wants(t, "after the cancelled request was answered", `"id":5,"error"`)
		for range maxOrphans + 1 {
			l.end(l.open(t, 9, alice, nil), true)
		}
		theirs = l.open(t, 3, bob, &b)
		l.ask("6", mcp.Elicit, "{}")
		l.wants(t, "after very many cancelled requests", notDeclared)
		l.end(theirs, false)
	})
}

// hasExpired drops the orphans that are too old for notifications.
func (p *pendingRequests) hasExpired() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.orphans.dropExpired(time.Now())
}
