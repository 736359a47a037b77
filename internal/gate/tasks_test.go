package gate

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
)

// TestTasksOfOthers checks that a task belongs to the client that started it. No other client can see it, by any
// method. The server answers requests about unknown tasks.
func TestTasksOfOthers(t *testing.T) {
	w, r := relayWorld(t, nil)
	as := func(principal, method, params string) *session.Request {
		q := passed(method, params)
		q.Caller.Actor.ID = principal
		return q
	}
	for id, form := range map[string]string{
		"modern": `{"resultType":"task","taskId":"modern","status":"working"}`,
		"older":  `{"task":{"taskId":"older","status":"working"}}`,
		"twice":  `{"resultType":"task","taskId":"twice"}`,
		"none":   `{"content":[],"resultType":"task","taskId":"none"}`,
	} {
		w.AnswerCall = func(context.Context, *session.Request) (session.Reply, error) {
			return session.Reply{Result: json.RawMessage(form)}, nil
		}
		for _, principal := range []string{"me", "you"} {
			if principal == "you" && id != "twice" {
				continue
			}
			if a, err := w.relay(t.Context(), as(principal, "tools/call", `{"name":"reads","task":{}}`)); err != nil || string(a.Result) != form {
				t.Fatalf("%s %v", a.Result, err)
			}
		}
	}
	for _, c := range []struct {
		principal, id string
		allowed       bool
	}{{"me", "modern", true}, {"me", "older", true}, {"you", "modern", false}, {"you", "older", false},
		{"you", "twice", true}, {"you", "none", true}, {"you", "unknown", true}} {
		for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel", "tasks/result"} {
			before := len(r.Asked)
			a, err := w.relay(t.Context(), as(c.principal, method, `{"taskId":"`+c.id+`"}`))
			if refused := a.Error != nil && a.Error.Code == wirejson.CodeInvalidParams; err != nil || refused == c.allowed || refused == (len(r.Asked) > before) {
				t.Errorf("%s of %s by %s: %+v %v", method, c.id, c.principal, a.Error, err)
			}
		}
	}
	listen := `{"notifications":{"toolsListChanged":true,"taskIds":["modern","twice","x",7]}}`
	for principal, want := range map[string]string{"me": listen, "you": `{"notifications":{"toolsListChanged":true,"taskIds":["twice","x",7]}}`} {
		if _, err := w.relay(t.Context(), as(principal, "subscriptions/listen", listen)); err != nil || r.Sent[len(r.Sent)-1] != "s "+want {
			t.Errorf("%s subscribed with %s %v", principal, r.Sent[len(r.Sent)-1], err)
		}
	}
	list := json.RawMessage(`{"tasks":[{"taskId":"modern"}, {"taskId":"twice"},{}],"nextCursor":"c"}`)
	for principal, want := range map[string]string{"me": string(list), "you": `{"tasks":[{"taskId":"twice"},{}],"nextCursor":"c"}`} {
		q := as(principal, "tasks/list", `{}`)
		if got := string(w.gate.tasks.filterListResult("s", q, list)); got != want {
			t.Errorf("the list for %s is %s", principal, got)
		}
	}
}

// TestTasksAreBounded checks that the oldest task is forgotten first.
func TestTasksAreBounded(t *testing.T) {
	tasks := newTaskOwners()
	for i := range maxTasks + 10 {
		tasks.recordOwner("s", fmt.Sprint(i), "me")
	}
	tasks.recordOwner("s", strings.Repeat("x", maxTaskID+1), "me")
	if len(tasks.owners) != maxTasks || len(tasks.order) != maxTasks {
		t.Errorf("%d tasks, %d in order", len(tasks.owners), len(tasks.order))
	}
	for id, foreign := range map[string]bool{"9": false, "10": true, fmt.Sprint(maxTasks + 9): true} {
		if got := tasks.isOwnedByOther("s", []byte(`"`+id+`"`), "you"); got != foreign {
			t.Errorf("%s: %t", id, got)
		}
	}
}

// TestUnfinishedResults checks that an incomplete result is not presented as a result.
func TestUnfinishedResults(t *testing.T) {
	w := newWorld(t, nil, reads, `{"name":"must","annotations":{"readOnlyHint":true},"execution":{"taskSupport":"required"}}`)
	call := func(name, result string, failure *wirejson.RPCError) (CallResult, *problem.Problem) {
		w.AnswerCall = func(context.Context, *session.Request) (session.Reply, error) {
			return session.Reply{Result: json.RawMessage(result), Error: failure}, nil
		}
		r, err := w.gate.Call(t.Context(), LaneCall{CallTool: policy.CallToolRead, Name: "s:" + name, Args: json.RawMessage(`{"a":1}`), Caller: anAgent})
		if err == nil {
			return r, nil
		}
		return r, problem.From(err)
	}
	for result, want := range map[string]string{
		`{"resultType":"task","taskId":"t"}`:                                        "a task",
		`{"task":{"taskId":"t"}}`:                                                   "a task",
		`{"resultType":"input_required","requestState":"x"}`:                        "a question",
		`{"resultType":"task","taskId":"t","content":[]}`:                           "",
		`{"task":{"taskId":7}}`:                                                     "",
		`{"resultType":"vendor's"}`:                                                 "",
		`{"content":[{"type":"text","text":"\"taskId\""}],"resultType":"complete"}`: "",
	} {
		r, p := call("reads", result, nil)
		switch {
		case want == "" && (p != nil || string(r.Result) != result):
			t.Errorf("%s: %s %v", result, r.Result, p)
		case want != "" && (p == nil || p.Code != problem.UpstreamError || !strings.Contains(p.Message, want) || !strings.Contains(p.Hint, "/mcp/servers/s")):
			t.Errorf("%s: %s %v", result, r.Result, p)
		}
	}
	if _, p := call("must", "", &wirejson.RPCError{Code: wirejson.CodeMethodNotFound, Message: "as a task"}); p == nil || !strings.Contains(p.Hint, "/mcp/servers/s") {
		t.Errorf("%v", p)
	}
}
