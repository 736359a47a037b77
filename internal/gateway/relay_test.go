package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpproxy/internal/activity"
	"mcpproxy/internal/config"
	"mcpproxy/internal/jsonrpc"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/upstream"
)

// relays passes on what is no call; its list is what the server lists now.
type relays struct {
	w       *world
	list    string
	refresh func()
	learns  bool
	asked   []string
	sent    []string
	hangs   string // server that does not answer when it is asked what it offers
	offered map[string][]json.RawMessage
	answer  func(context.Context) (upstream.Answer, error) // nil: it answers at once
}

func (r *relays) Converse(context.Context, string, upstream.Request) (*upstream.Conversation, upstream.Answer, error) {
	return nil, upstream.Answer{}, errors.New("not here")
}

func (r *relays) Relay(ctx context.Context, server string, _ *upstream.Conversation, q upstream.Request) (upstream.Answer, error) {
	r.sent = append(r.sent, server+" "+string(q.Params))
	r.asked = append(r.asked, q.Method)
	if r.answer != nil {
		return r.answer(ctx)
	}
	return upstream.Answer{Result: json.RawMessage(`{"x":1,"tools":[` + r.list + `],"nextCursor":"c"}`)}, nil
}

func (r *relays) Learn(_ string, definitions []json.RawMessage) bool {
	if !r.learns {
		return false
	}
	var all []string
	for _, d := range append([]json.RawMessage{json.RawMessage(reads)}, definitions...) {
		all = append(all, string(d))
	}
	r.w.list(all...)
	return true
}

func (r *relays) Refresh(context.Context, string, time.Time) {
	if r.refresh != nil {
		r.refresh()
	}
}

func (r *relays) Offered(ctx context.Context, server, method, _ string) ([]json.RawMessage, error) {
	if r.hangs == server {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return r.offered[server+" "+method], nil
}

const (
	reads   = `{"name":"reads","inputSchema":{"type":"object","required":["a"]},"annotations":{"readOnlyHint":true}}`
	deletes = `{"name":"deletes","annotations":{"destructiveHint":true}}`
	denied  = `{"name":"denied"}`
)

func relayWorld(t *testing.T, change func(*config.Config)) (*world, *relays) {
	w := newWorld(t, func(c *config.Config) {
		c.Servers[0].DisabledTools = []string{"denied"}
		c.Intent.RequireIntent = true
		if change != nil {
			change(c)
		}
	}, reads, deletes, denied)
	r := &relays{w: w}
	w.gateway.Relays = r
	return w, r
}

// TestTimesOut: what the upstream says about a call whose time is up is what the
// client gets, and who waits for a place in vain hears that it was not sent.
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
			w.answer = func(ctx context.Context, _ upstream.Call) (upstream.Reply, error) {
				return upstream.Reply{}, failure(ctx)
			}
			r.answer = func(ctx context.Context) (upstream.Answer, error) { return upstream.Answer{}, failure(ctx) }
			for _, request := range []RelayRequest{passed("tools/call", `{"name":"reads"}`), passed("prompts/get", `{"name":"p"}`)} {
				began := time.Now()
				_, err := w.gateway.Relay(t.Context(), request)
				if p := problem.From(err); p.Code != code || p.Message != "as it is" || p.Hint != hint || time.Since(began) != time.Minute {
					t.Errorf("%s: %s %q %q after %v", request.Request.Method, p.Code, p.Message, p.Hint, time.Since(began))
				}
			}
		}
		began := time.Now()
		occupied := make(chan error)
		r.answer = func(ctx context.Context) (upstream.Answer, error) {
			time.Sleep(time.Hour)
			return upstream.Answer{}, nil
		}
		go func() {
			_, err := w.gateway.Relay(t.Context(), passed("prompts/get", `{}`))
			occupied <- err
		}()
		synctest.Wait()
		_, err := w.gateway.Relay(t.Context(), passed("prompts/get", `{}`))
		if p := problem.From(err); p.Code != problem.Timeout || !strings.Contains(p.Hint, "not sent") || time.Since(began) != time.Minute {
			t.Errorf("without a place: %s %q %q after %v", p.Code, p.Message, p.Hint, time.Since(began))
		}
		<-occupied
	})
}

func passed(method, params string) RelayRequest {
	return RelayRequest{Server: "s", Caller: anAgent, Request: upstream.Request{ID: json.RawMessage("1"), Method: method, Params: json.RawMessage(params)}}
}

// TestPassedCall: a client's own tools/call goes through the door: decided,
// recorded in the lane of the hints, and only then asked; its arguments and the
// answer pass as they are.
func TestPassedCall(t *testing.T) {
	w, r := relayWorld(t, func(c *config.Config) { c.ResultLimit = 10 })
	a, err := w.gateway.Relay(t.Context(), passed("tools/call", `{"name":"reads","arguments":{"wrong":9007199254740993}}`))
	if err != nil || string(a.Result) != `{"content":[{"type":"text","text":"done"}],"x":9007199254740993}` {
		t.Fatalf("%s %v", a.Result, err)
	}
	if want := []string{"begin", `call {"wrong":9007199254740993}`, "end"}; !slices.Equal(w.events, want) {
		t.Errorf("events %q", w.events)
	}
	if b := w.begun[0]; b.ToolName != "reads" || b.Metadata.ToolVariant != "call_tool_read" || b.Metadata.Intent.OperationType != "read" {
		t.Errorf("record %+v", b)
	}
	w.answer = func(context.Context, upstream.Call) (upstream.Reply, error) {
		return upstream.Reply{Status: 400, Error: &jsonrpc.Error{Code: -32021, Message: "no", Data: json.RawMessage(`{"a":1}`)}}, nil
	}
	a, err = w.gateway.Relay(t.Context(), passed("tools/call", `{"name":"deletes"}`))
	if err != nil || a.Status != 400 || a.Error == nil || a.Error.Code != -32021 || string(a.Error.Data) != `{"a":1}` {
		t.Errorf("%+v %v", a, err)
	}
	if w.begun[1].Metadata.ToolVariant != "call_tool_destructive" || w.ended[1].Status != activity.Failed {
		t.Errorf("record %+v %+v", w.begun[1], w.ended[1])
	}
	if len(r.asked) != 0 {
		t.Errorf("passed on past the door: %q", r.asked)
	}
}

// TestPassedCallRefused: what is locked, unknown or unsound is refused, on
// record, and not asked.
func TestPassedCallRefused(t *testing.T) {
	w, _ := relayWorld(t, nil)
	for params, want := range map[string]problem.Code{
		`{"name":"denied"}`:                   problem.ToolLocked,
		`{"name":"nope"}`:                     problem.ToolNotFound,
		`{"name":7}`:                          problem.InvalidName,
		`{"name":"reads","arguments":[1]}`:    problem.InvalidArgs,
		`{"name":"reads:deletes"}`:            problem.ToolNotFound,
		`{"name":"denied","name2":"deletes"}`: problem.ToolLocked,
	} {
		if _, err := w.gateway.Relay(t.Context(), passed("tools/call", params)); problem.From(err).Code != want {
			t.Errorf("%s: %v, want %s", params, err, want)
		}
	}
	for _, e := range w.events {
		if e != "append" {
			t.Errorf("event %q", e)
		}
	}
}

// TestVisible: a list leaves out what cannot be called, and what the catalog
// has not judged, and keeps every other byte.
func TestVisible(t *testing.T) {
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
		r.list = c.list
		if a, err := w.gateway.Relay(t.Context(), passed("tools/list", `{}`)); err != nil || string(a.Result) != c.want {
			t.Errorf("%s: %s %v", c.name, a.Result, err)
		}
	}
	// Of two lists a client may take the other one.
	for _, twice := range []string{`tools`, `Tools`, `\u0074ools`, `toolſ`} {
		r.list = reads + `],"` + twice + `":[{"name":"reads","description":"<IMPORTANT>"}`
		if a, err := w.gateway.Relay(t.Context(), passed("tools/list", `{}`)); problem.From(err) == nil || problem.From(err).Code != problem.UpstreamError {
			t.Errorf("%s: %s %v", twice, a.Result, err)
		}
	}
	if oneList(json.RawMessage(`{"Tools":[{"name":"reads"}]}`)) {
		t.Error("a list under another name")
	}
	r.learns, r.list = true, reads+`,{"name":"for this client"}`
	r.refresh = func() { t.Error("it was learnt, and asked for all the same") }
	if a, err := w.gateway.Relay(t.Context(), passed("tools/list", `{}`)); err != nil || string(a.Result) != `{"x":1,"tools":[`+r.list+`],"nextCursor":"c"}` {
		t.Errorf("listed to this client only: %s %v", a.Result, err)
	}
	r.learns = false
	r.list, r.refresh = `{"name":"new"}`, func() { w.list(`{"name":"new"}`) }
	if a, err := w.gateway.Relay(t.Context(), passed("tools/list", `{}`)); err != nil || string(a.Result) != `{"x":1,"tools":[{"name":"new"}],"nextCursor":"c"}` {
		t.Errorf("after it was learnt: %s %v", a.Result, err)
	}
}

// TestUnreachable: only servers that may be spoken to are.
func TestUnreachable(t *testing.T) {
	for want, change := range map[problem.Code]func(*config.Config){
		problem.ServerUnavailable: func(c *config.Config) { c.Servers[0].Enabled = false },
		problem.ServerNotFound:    func(c *config.Config) { c.Servers[0].Name = "other" },
	} {
		w, r := relayWorld(t, change)
		for _, method := range []string{"tools/call", "tools/list", "resources/read"} {
			if _, err := w.gateway.Relay(t.Context(), passed(method, `{"name":"reads"}`)); problem.From(err).Code != want {
				t.Errorf("%s: %v, want %s", method, err, want)
			}
		}
		if _, _, err := w.gateway.Converse(t.Context(), passed("initialize", `{}`)); problem.From(err).Code != want || len(r.asked) != 0 {
			t.Errorf("%v %q", err, r.asked)
		}
	}
	w, _ := relayWorld(t, func(c *config.Config) { c.Servers[0].Quarantined = true })
	if _, err := w.gateway.Relay(t.Context(), passed("prompts/list", `{}`)); err == nil || !strings.Contains(err.Error(), "quarantined") {
		t.Errorf("%v", err)
	}
}
