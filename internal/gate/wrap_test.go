package gate

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/config"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

// TestTimesOut checks that a client gets the upstream's message about its timed-out call. A call that timed out in
// the queue is reported as not sent.
func TestTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, r := relayWorld(t, func(c *config.Config) {
			c.CallTimeout, c.Servers[0].MaxConcurrent, c.QueueSize, c.QueueTimeout = time.Minute, 1, 9, time.Hour
		})
		for code, hint := range map[problem.Code]string{problem.Timeout: "check before you try again", problem.ServerUnavailable: "see its log"} {
			failure := func(ctx context.Context) error {
				<-ctx.Done()
				return problem.New(code, "as it is", hint).With("server", "s").Because(ctx.Err())
			}
			w.AnswerCall = func(ctx context.Context, _ *session.Request) (session.Reply, error) {
				return session.Reply{}, failure(ctx)
			}
			r.Reply = func(ctx context.Context, _ *session.Request) (session.Reply, error) {
				return session.Reply{}, failure(ctx)
			}
			for _, request := range []*session.Request{passed("tools/call", `{"name":"reads"}`), passed("prompts/get", `{"name":"p"}`)} {
				began := time.Now()
				_, err := w.relay(t.Context(), request)
				if p := problem.From(err); p.Code != code || p.Message != "as it is" || p.Hint != hint || time.Since(began) != time.Minute {
					t.Errorf("%s: %s %q %q after %v", request.Method, p.Code, p.Message, p.Hint, time.Since(began))
				}
			}
		}
		began := time.Now()
		occupied := make(chan error)
		r.Reply = func(ctx context.Context, _ *session.Request) (session.Reply, error) {
			time.Sleep(time.Hour)
			return session.Reply{}, nil
		}
		go func() {
			_, err := w.relay(t.Context(), passed("prompts/get", `{}`))
			occupied <- err
		}()
		synctest.Wait()
		_, err := w.relay(t.Context(), passed("prompts/get", `{}`))
		if p := problem.From(err); p.Code != problem.Timeout || !strings.Contains(p.Hint, "not sent") || time.Since(began) != time.Minute {
			t.Errorf("without a slot: %s %q %q after %v", p.Code, p.Message, p.Hint, time.Since(began))
		}
		<-occupied
	})
}

// TestForwardedCall checks that a client's own tools/call goes through the gate: it is decided, recorded in the lane
// of the hints, and only then held for approval. Its arguments and the response are unchanged.
func TestForwardedCall(t *testing.T) {
	w, r := relayWorld(t, func(c *config.Config) { c.ResultLimit = 10 })
	a, err := w.relay(t.Context(), passed("tools/call", `{"name":"reads","arguments":{"wrong":9007199254740993}}`))
	if err != nil || string(a.Result) != `{"content":[{"type":"text","text":"done"}],"x":9007199254740993}` {
		t.Fatalf("%s %v", a.Result, err)
	}
	if want := []string{"begin", `call {"wrong":9007199254740993}`, "end"}; !slices.Equal(w.Events, want) {
		t.Errorf("events %q", w.Events)
	}
	if b := w.Begun[0]; b.ToolName != "reads" || b.Metadata.ToolVariant != "call_tool_read" || b.Metadata.Intent.OperationType != "read" {
		t.Errorf("record %+v", b)
	}
	w.AnswerCall = func(context.Context, *session.Request) (session.Reply, error) {
		return session.Reply{Status: 400, Error: &wirejson.RPCError{Code: -32021, Message: "no", Data: json.RawMessage(`{"a":1}`)}}, nil
	}
	a, err = w.relay(t.Context(), passed("tools/call", `{"name":"deletes"}`))
	if err != nil || a.Status != 400 || a.Error == nil || a.Error.Code != -32021 || string(a.Error.Data) != `{"a":1}` {
		t.Errorf("%+v %v", a, err)
	}
	if w.Begun[1].Metadata.ToolVariant != "call_tool_destructive" || w.Ended[1].Status != activity.Failed {
		t.Errorf("record %+v %+v", w.Begun[1], w.Ended[1])
	}
	if len(r.Asked) != 0 {
		t.Errorf("forwarded without the gate: %q", r.Asked)
	}
}

// TestForwardedCallRefused checks that a call of a locked or unknown tool, or an invalid call, is refused, recorded,
// and not sent.
func TestForwardedCallRefused(t *testing.T) {
	w, _ := relayWorld(t, nil)
	for params, want := range map[string]problem.Code{
		`{"name":"denied"}`:                   problem.ToolLocked,
		`{"name":"nope"}`:                     problem.ToolNotFound,
		`{"name":7}`:                          problem.InvalidName,
		`{"name":"reads","arguments":[1]}`:    problem.InvalidArgs,
		`{"name":"reads","arguments":"{}"}`:   problem.InvalidArgs, // would be sent unchanged
		`{"name":"reads:deletes"}`:            problem.ToolNotFound,
		`{"name":"denied","name2":"deletes"}`: problem.ToolLocked,
	} {
		if _, err := w.relay(t.Context(), passed("tools/call", params)); problem.From(err).Code != want {
			t.Errorf("%s: %v, want %s", params, err, want)
		}
	}
	for _, e := range w.Events {
		if e != "refuse" {
			t.Errorf("event %q", e)
		}
	}
}

// TestVisible checks that a list omits tools that cannot be called, or that the catalog has not evaluated, and keeps
// every other byte.
func TestVisible(t *testing.T) {
	t.Parallel()
	w, r := relayWorld(t, nil)
	changed := strings.Replace(reads, "readOnly", "destructive", 1)
	for _, c := range []struct{ name, list, want string }{
		{"all", reads + ", " + deletes, `{"x":1,"tools":[` + reads + ", " + deletes + `],"nextCursor":"c"}`},
		{"locked", reads + ", " + denied, `{"x":1,"tools":[` + reads + `],"nextCursor":"c"}`},
		{"unknown", `{"name":"new"},` + deletes, `{"x":1,"tools":[` + deletes + `],"nextCursor":"c"}`},
		{"changed", changed + "," + deletes, `{"x":1,"tools":[` + deletes + `],"nextCursor":"c"}`},
		{"no tool", `7,` + deletes, `{"x":1,"tools":[` + deletes + `],"nextCursor":"c"}`},
		{"none left", denied, `{"x":1,"tools":[],"nextCursor":"c"}`},
	} {
		r.Tools = c.list
		if a, err := w.relay(t.Context(), passed("tools/list", `{}`)); err != nil || string(a.Result) != c.want {
			t.Errorf("%s: %s %v", c.name, a.Result, err)
		}
	}
	// If there are two lists, a client may read the other one.
	for _, twice := range []string{`tools`, `Tools`, `\u0074ools`, `toolſ`} {
		r.Tools = reads + `],"` + twice + `":[{"name":"reads","description":"<IMPORTANT>"}`
		if a, err := w.relay(t.Context(), passed("tools/list", `{}`)); problem.From(err) == nil || problem.From(err).Code != problem.UpstreamError {
			t.Errorf("%s: %s %v", twice, a.Result, err)
		}
	}
	if a, err := w.gate.Offers.FilterResult(t.Context(), "s", "tools/list", json.RawMessage(`{"Tools":[{"name":"reads"}]}`), catalog.Recipient{RequestedAt: time.Now()}); err == nil {
		t.Errorf("a list under another name: %s", a)
	}
	r.ToolsLearned, r.Tools = true, reads+`,{"name":"for this client"}`
	r.OnRefresh = func() { t.Error("a known list was requested again") }
	if a, err := w.relay(t.Context(), passed("tools/list", `{}`)); err != nil || string(a.Result) != `{"x":1,"tools":[`+r.Tools+`],"nextCursor":"c"}` {
		t.Errorf("a list for this client only: %s %v", a.Result, err)
	}
	r.ToolsLearned = false
	r.Tools, r.OnRefresh = `{"name":"new"}`, func() { w.SetTools(`{"name":"new"}`) }
	if a, err := w.relay(t.Context(), passed("tools/list", `{}`)); err != nil || string(a.Result) != `{"x":1,"tools":[{"name":"new"}],"nextCursor":"c"}` {
		t.Errorf("after the list was known: %s %v", a.Result, err)
	}
}

// TestUnreachable checks that messages can be sent to available servers only.
func TestUnreachable(t *testing.T) {
	for want, change := range map[problem.Code]func(*config.Config){
		problem.ServerUnavailable: func(c *config.Config) { c.Servers[0].Enabled = false },
		problem.ServerNotFound:    func(c *config.Config) { c.Servers[0].Name = "other" },
	} {
		w, r := relayWorld(t, change)
		for _, method := range []string{"tools/call", "tools/list", "resources/read"} {
			want := want
			if method == "tools/call" && want == problem.ServerUnavailable {
				want = problem.ToolLocked // refused and recorded by the gate
			}
			if _, err := w.relay(t.Context(), passed(method, `{"name":"reads"}`)); problem.From(err).Code != want {
				t.Errorf("%s: %v, want %s", method, err, want)
			}
		}
		if _, _, err := w.gate.GatedEndpoint("s").OpenSession(t.Context(), passed("initialize", `{}`)); problem.From(err).Code != want || len(r.Asked) != 0 {
			t.Errorf("%v %q", err, r.Asked)
		}
	}
	w, _ := relayWorld(t, func(c *config.Config) { c.Servers[0].Quarantined = true })
	if _, err := w.relay(t.Context(), passed("prompts/list", `{}`)); err == nil || !strings.Contains(err.Error(), "quarantined") {
		t.Errorf("%v", err)
	}
}

// TestHeadersMustMatchTheArguments checks that a request whose headers differ from its arguments is refused before
// the decision, and recorded, because routers trust the headers. Without headers, or in a session, there is nothing
// to compare.
func TestHeadersMustMatchTheArguments(t *testing.T) {
	const routed = `{"name":"routed","inputSchema":{"type":"object","properties":{"tenant":{"type":"string","x-mcp-header":"Tenant"}}},"annotations":{"readOnlyHint":true}}`
	w := newWorld(t, nil, routed)
	surface := w.gate.GatedEndpoint("s")
	opened, _, err := surface.OpenSession(t.Context(), passed("initialize", `{}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		to     session.Doer
		fields []mcp.Header
		code   int
	}{
		{surface, []mcp.Header{{Name: "Mcp-Param-Tenant", Value: "a"}}, 0},
		{surface, []mcp.Header{{Name: "Mcp-Param-Tenant", Value: "b"}}, mcp.CodeHeaderMismatch},
		{surface, []mcp.Header{}, mcp.CodeHeaderMismatch},
		{surface, nil, 0},
		{opened, []mcp.Header{{Name: "Mcp-Param-Tenant", Value: "b"}}, 0},
	} {
		w.Events, w.Appended = nil, nil
		r := passed("tools/call", `{"name":"routed","arguments":{"tenant":"a"}}`)
		r.Headers = c.fields
		reply, err := c.to.Do(t.Context(), r)
		if c.code == 0 {
			if err != nil || reply.Error != nil {
				t.Errorf("%v: %+v %v", c.fields, reply.Error, err)
			}
			continue
		}
		if err != nil || reply.Error == nil || reply.Error.Code != c.code || reply.Status != 400 || !slices.Equal(w.Events, []string{"refuse"}) {
			t.Errorf("%v: %+v %v, %q", c.fields, reply, err, w.Events)
			continue
		}
		if r := w.Appended[0]; r.ServerName != "s" || r.ToolName != "routed" || r.Metadata.ErrorCode != string(problem.InvalidRequest) ||
			!strings.HasPrefix(r.ErrorMessage, "Header mismatch: Mcp-Param-Tenant") || string(r.Arguments) != `{"tenant":"a"}` {
			t.Errorf("%v: record %+v", c.fields, r)
		}
	}
}
