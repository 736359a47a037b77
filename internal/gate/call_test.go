package gate

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

func TestTheRecordComesBeforeTheCall(t *testing.T) {
	w := newWorld(t, nil, readsTool)
	r, p := w.call(policy.CallToolRead, "s:reads", ` {"n": 9007199254740993} `)
	if p != nil {
		t.Fatal(p)
	}
	if string(r.Result) != `{"content":[{"type":"text","text":"done"}],"x":9007199254740993}` {
		t.Errorf("the result changed: %s", r.Result)
	}
	want := []string{"begin", `call  {"n": 9007199254740993} `, "end"}
	if !slices.Equal(w.Events, want) {
		t.Errorf("events %q, want %q", w.Events, want)
	}
	begun, ended := w.Begun[0], w.Ended[0]
	if begun.Metadata.Intent.OperationType != "read" || begun.Metadata.ToolVariant != "call_tool_read" || begun.Actor != "agent" {
		t.Errorf("record: %+v", begun)
	}
	if ended.Status != activity.Success || ended.ResponseBytes != int64(len(r.Result)) {
		t.Errorf("the outcome: %+v", ended)
	}
}

func TestWithoutARecordThereIsNoCall(t *testing.T) {
	w := newWorld(t, nil, readsTool)
	w.BeginErr = problem.New(problem.AuditUnavailable, "the disk is full", "")
	if _, p := w.call(policy.CallToolRead, "s:reads", `{"n":1}`); p == nil || p.Code != problem.AuditUnavailable {
		t.Errorf("got %v", p)
	}
	if len(w.Events) != 0 {
		t.Errorf("unexpected events: %q", w.Events)
	}
}

func TestRefusedCallsAreRecordedAndNotSent(t *testing.T) {
	cases := []struct {
		name    string
		variant policy.CallToolVariant
		tool    string
		args    string
		code    problem.Code
	}{
		{"destructive tool in the read lane", policy.CallToolRead, "s:destroys", `{}`, problem.ServerMismatch},
		{"no variant", policy.CallToolNone, "s:reads", `{"n":1}`, ""},
		{"no colon", policy.CallToolRead, "reads", `{}`, problem.InvalidName},
		{"no server", policy.CallToolRead, "x:reads", `{}`, problem.ServerNotFound},
		{"no tool", policy.CallToolRead, "s:read", `{}`, problem.ToolNotFound},
		{"not an object", policy.CallToolRead, "s:reads", `7`, problem.InvalidArgs},
		{"duplicate keys", policy.CallToolRead, "s:reads", `{"n":1,"n":2}`, problem.InvalidArgs},
		{"case variants", policy.CallToolRead, "s:reads", `{"n":1,"N":2}`, problem.InvalidArgs},
		{"against the schema", policy.CallToolRead, "s:reads", `{"n":"x"}`, problem.ArgsMismatch},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, nil, readsTool, destroysTool)
			_, p := w.call(c.variant, c.tool, c.args)
			if p == nil || c.code != "" && p.Code != c.code {
				t.Fatalf("got %+v, want %s", p, c.code)
			}
			if !slices.Equal(w.Events, []string{"refuse"}) {
				t.Fatalf("events %q", w.Events)
			}
			r := w.Appended[0]
			if r.Type != activity.PolicyDecision || r.Status != activity.Blocked || r.Metadata.ErrorCode != string(p.Code) {
				t.Errorf("the record: %+v", r)
			}
		})
	}
}

func TestOutcomeIsAlwaysRecorded(t *testing.T) {
	cases := map[string]struct {
		answer  func(ctx context.Context, c *session.Request) (session.Reply, error)
		code    problem.Code
		message string
	}{
		"upstream error": {func(context.Context, *session.Request) (session.Reply, error) {
			return session.Reply{Error: &wirejson.RPCError{Code: -32602, Message: "bad city", Data: json.RawMessage(`{"x":1}`)}}, nil
		}, problem.UpstreamError, "bad city"},
		"unavailable": {func(context.Context, *session.Request) (session.Reply, error) {
			return session.Reply{}, problem.New(problem.ServerUnavailable, "it is away", "")
		}, problem.ServerUnavailable, "it is away"},
		"deadline": {func(ctx context.Context, _ *session.Request) (session.Reply, error) {
			return session.Reply{}, context.DeadlineExceeded
		}, problem.Timeout, "did not answer within"},
		"no object": {func(context.Context, *session.Request) (session.Reply, error) {
			return session.Reply{Result: json.RawMessage(`[1]`)}, nil
		}, problem.UpstreamError, "not a result object"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil, readsTool)
			w.AnswerCall = c.answer
			_, p := w.call(policy.CallToolRead, "s:reads", `{"n":1}`)
			if p == nil || p.Code != c.code || !strings.Contains(p.Message, c.message) {
				t.Fatalf("got %+v", p)
			}
			if len(w.Ended) != 1 || w.Ended[0].Status != activity.Failed || w.Ended[0].ErrorCode != string(c.code) {
				t.Errorf("the outcome: %+v", w.Ended)
			}
		})
	}
}

func TestAPanicIsRecorded(t *testing.T) {
	w := newWorld(t, nil, readsTool)
	w.AnswerCall = func(context.Context, *session.Request) (session.Reply, error) { panic("boom") }
	func() {
		defer func() { _ = recover() }()
		w.call(policy.CallToolRead, "s:reads", `{"n":1}`)
	}()
	if len(w.Ended) != 1 || w.Ended[0].Status != activity.Failed {
		t.Errorf("the outcome: %+v", w.Ended)
	}
}

func TestCancellationAndTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, readsTool)
		w.AnswerCall = func(ctx context.Context, _ *session.Request) (session.Reply, error) {
			<-ctx.Done()
			return session.Reply{}, ctx.Err()
		}
		started := time.Now()
		_, err := w.gate.Call(context.Background(), LaneCall{CallTool: policy.CallToolRead, Name: "s:reads", Args: json.RawMessage(`{"n":1}`), Caller: anAgent, Timeout: time.Second})
		if problem.From(err).Code != problem.Timeout || time.Since(started) != time.Second {
			t.Errorf("%v after %s", err, time.Since(started))
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_, err = w.gate.Call(ctx, LaneCall{CallTool: policy.CallToolRead, Name: "s:reads", Args: json.RawMessage(`{"n":1}`), Caller: anAgent})
		if problem.From(err).Code != problem.Interrupted {
			t.Errorf("cancelled: %v", err)
		}
		if len(w.Ended) != 2 {
			t.Errorf("%d outcomes", len(w.Ended))
		}
	})
}

func TestValidateArgumentsModes(t *testing.T) {
	for _, c := range []struct {
		general, own config.ArgumentValidation
		passes, warn bool
	}{
		{config.ValidateReject, "", false, false},
		{config.ValidateWarn, "", true, true},
		{config.ValidateOff, "", true, false},
		{config.ValidateReject, config.ValidateOff, true, false},
		{config.ValidateOff, config.ValidateReject, false, false},
	} {
		w := newWorld(t, func(cfg *config.Config) {
			cfg.ValidateArguments = c.general
			cfg.Servers[0].ValidateArguments = c.own
		}, readsTool)
		r, p := w.call(policy.CallToolRead, "s:reads", `{"n":"x"}`)
		if (p == nil) != c.passes || (len(r.Warnings) > 0) != c.warn {
			t.Errorf("%s/%s: %+v %v", c.general, c.own, r, p)
		}
	}
}

func TestABrokenSchemaWarnsAndPasses(t *testing.T) {
	w := newWorld(t, nil, brokenTool)
	r, p := w.call(policy.CallToolWrite, "s:broken", `{"n":1}`)
	if p != nil || len(r.Warnings) != 1 {
		t.Fatalf("%+v %v", r, p)
	}
	var got struct {
		Meta struct {
			Warnings []string `json:"mcpproxy/warnings"`
		} `json:"_meta"`
		X json.Number
	}
	if err := json.Unmarshal(r.Result, &got); err != nil || !slices.Equal(got.Meta.Warnings, r.Warnings) || got.X != "9007199254740993" {
		t.Errorf("the result: %s %v", r.Result, err)
	}
}

func TestLimitsOfConcurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(c *config.Config) {
			c.Servers[0].MaxConcurrent, c.QueueSize, c.QueueTimeout = 1, 1, time.Second
		}, readsTool)
		release := make(chan struct{})
		w.AnswerCall = func(context.Context, *session.Request) (session.Reply, error) {
			<-release
			return session.Reply{Result: json.RawMessage(`{}`)}, nil
		}
		codes := make(chan problem.Code, 3)
		for range 3 {
			go func() {
				_, err := w.gate.Call(context.Background(), LaneCall{CallTool: policy.CallToolRead, Name: "s:reads", Args: json.RawMessage(`{"n":1}`), Caller: anAgent})
				if err == nil {
					codes <- ""
					return
				}
				codes <- problem.From(err).Code
			}()
		}
		// One call runs, one waits a second without getting a slot, one finds the queue full.
		if a, b := <-codes, <-codes; a != problem.Overloaded || b != problem.Overloaded {
			t.Errorf("got %s, %s", a, b)
		}
		close(release)
		if c := <-codes; c != "" {
			t.Errorf("the running call ended with %s", c)
		}
	})
}

// TestHintsAreReadAtCallTime checks that, while a server changes its hints, no call in the read lane reaches a tool
// that the current snapshot marks as destructive.
func TestHintsAreReadAtCallTime(t *testing.T) {
	w := newWorld(t, nil, `{"name":"destroys","annotations":{"readOnlyHint":true}}`)
	if _, p := w.call(policy.CallToolRead, "s:destroys", `{}`); p != nil {
		t.Fatalf("read-only at first: %v", p)
	}
	w.SetTools(destroysTool) // stricter: accepted by trust auto
	if _, p := w.call(policy.CallToolRead, "s:destroys", `{}`); p == nil || p.Code != problem.ServerMismatch {
		t.Fatalf("destructive now: %v", p)
	}
}

// TestArgumentsThatCannotBeCheckedAreRefused checks that a call with arguments that are too large to check is
// refused. Otherwise every caller could disable the check.
func TestArgumentsThatCannotBeCheckedAreRefused(t *testing.T) {
	w := newWorld(t, nil, `{"name":"rows","inputSchema":{"type":"object","properties":{"rows":{"type":"array","items":{"not":{"required":["b"]}}}}}}`)
	_, p := w.call(policy.CallToolWrite, "s:rows", `{"rows":[`+strings.Repeat(`{"a":1},`, 100_000)+`{"a":1}]}`)
	if p == nil || p.Code != problem.ArgsMismatch {
		t.Fatalf("got %v", p)
	}
	if !slices.Equal(w.Events, []string{"refuse"}) {
		t.Errorf("events %q", w.Events)
	}
}
