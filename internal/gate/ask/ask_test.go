package ask

import (
	"encoding/json"
	"testing"
	"time"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/problem"
)

var start = time.Date(2026, 1, 15, 10, 30, 0, 0, time.UTC)

func call() Call {
	return Call{Principal: "agent", Session: "s", ID: tool.ID{Server: "a", Tool: "b"}, Fingerprint: tool.Fingerprint{1}, Arguments: json.RawMessage(`{"x":1}`), Revision: "r", Variant: "call_tool_write"}
}

// TestKey checks that a call with any difference has another key, and that a call with the same meaning has the same
// key.
func TestKey(t *testing.T) {
	one := call()
	seen := map[CallKey]string{one.Key(): "the call"}
	for name, change := range map[string]func(*Call){
		"principal": func(c *Call) { c.Principal = "agent:x" }, "session": func(c *Call) { c.Session = "" }, "server": func(c *Call) { c.Server = "ab" },
		"tool": func(c *Call) { c.Tool = "c" }, "fingerprint": func(c *Call) { c.Fingerprint[31] = 1 }, "revision": func(c *Call) { c.Revision = "" }, "variant": func(c *Call) { c.Variant = "call_tool_read" },
		"arguments": func(c *Call) { c.Arguments = json.RawMessage(`{"x":2}`) }, "their type": func(c *Call) { c.Arguments = json.RawMessage(`{"x":"1"}`) }, "null is not left out": func(c *Call) { c.Arguments = json.RawMessage(`{"x":1,"y":null}`) },
		"no JSON": func(c *Call) { c.Arguments = json.RawMessage(`{"x":1`) }, "what moves between fields": func(c *Call) { c.Principal, c.Session = "agents", "" },
		"a number beyond a double": func(c *Call) { c.Arguments = json.RawMessage(`{"x":9007199254740993}`) }, "its neighbour": func(c *Call) { c.Arguments = json.RawMessage(`{"x":9007199254740992}`) },
		"zero": func(c *Call) { c.Arguments = json.RawMessage(`{"x":0}`) }, "minus zero": func(c *Call) { c.Arguments = json.RawMessage(`{"x":-0}`) },
	} {
		c := call()
		change(&c)
		if other := seen[c.Key()]; other != "" {
			t.Errorf("%s: same key as %s", name, other)
		}
		seen[c.Key()] = name
	}
	for _, same := range []string{`{ "x" : 1 }`, `{"x":1.0}`, `{"\u0078":1e0}`} {
		c := call()
		if c.Arguments = json.RawMessage(same); c.Key() != one.Key() {
			t.Errorf("%s has another key", same)
		}
	}
	zero, spelled := call(), call()
	zero.Arguments, spelled.Arguments = json.RawMessage(`{"x":-0}`), json.RawMessage(`{"x":-0.0e5}`)
	if zero.Key() != spelled.Key() {
		t.Error("-0 and -0.0e5 have different keys")
	}
}

func TestStates(t *testing.T) {
	q := Question{ID: "q", State: Waiting, Until: start.Add(Life)}
	for at, want := range map[time.Duration]QuestionState{0: Waiting, Life - 1: Waiting, Life: Expired, -Skew: Waiting, -Skew - time.Second: Expired} {
		if got := q.StateAt(start.Add(at)); got != want {
			t.Errorf("at %v: %s, want %s", at, got, want)
		}
	}
	if p := q.RecordAnswer(Answer{Approve: true, Why: "no reason", By: "admin", Via: "ui", At: start.Add(Life)}); p == nil || p.Code != problem.Conflict || p.Detail("state") != "expired" {
		t.Errorf("a late answer: %v", p)
	}
	if p := q.RecordAnswer(Answer{Approve: true, Why: "no reason", By: "admin", Via: "ui", At: start.Add(time.Minute)}); p != nil || q.State != Approved || q.Why != "" || !q.Until.Equal(start.Add(time.Minute+Life)) {
		t.Errorf("%v, %+v", p, q)
	}
	if p := q.RecordAnswer(Answer{By: "admin", At: start.Add(2 * time.Minute)}); p == nil || p.Detail("state") != "approved" {
		t.Errorf("a second answer: %v", p)
	}
	q.State = Used
	if p := q.RecordAnswer(Answer{By: "admin", At: start.Add(9 * Life)}); p == nil || p.Detail("state") != "used" {
		t.Errorf("an answer after its use: %v", p)
	}
}

func TestLease(t *testing.T) {
	l := Lease{Server: "a", Lane: auth.Write, Revision: "r", Left: 1, Until: start.Add(time.Hour)}
	for want, change := range map[EndReason]func(*Lease){
		Runs: func(*Lease) {}, WasRevoked: func(l *Lease) { l.Revoked = start }, NoCallsLeft: func(l *Lease) { l.Left = 0 }, OtherConfig: func(l *Lease) { l.Revision = "s" }, TimeIsOver: func(l *Lease) { l.Until = start },
	} {
		one := l
		if change(&one); one.EndReason(start, "r") != want {
			t.Errorf("%q, want %q", one.EndReason(start, "r"), want)
		}
	}
	if l.Until = start.Add(LongestLease + 2*Skew); l.EndReason(start, "r") != TimeIsOver {
		t.Error("a lease lasts longer than the limit")
	}
	c := call()
	for lane, want := range map[auth.OperationLane]bool{0: false, auth.Read: true, auth.Write: true, auth.Destructive: false, 9: false} {
		if l.Covers(&c, lane) != want {
			t.Errorf("lane %d is covered: %v", lane, !want)
		}
	}
}
