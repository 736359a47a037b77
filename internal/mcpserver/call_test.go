package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

// The caller in the activity record.
func TestCaller(t *testing.T) {
	h := newHarness(t)
	call := `{"name":"a:b","args":{"x":1}}`
	h.callModern(callToolWrite, call).tool()
	got := h.gw.lastCall(t)
	c := got.Caller
	if got.CallTool != policy.CallToolWrite || got.Name != "a:b" || string(got.Args) != `{"x":1}` || got.RequestBytes == 0 || got.Meta != nil {
		t.Errorf("%+v", got)
	}
	if c.Actor != (auth.Actor{Kind: auth.Agent}) || c.Source != activity.SourceMCP || c.RequestID != "7" || c.ClientName != "tester" || c.ClientVersion != "9" || c.SessionID != "" {
		t.Errorf("%+v", c)
	}
	session := h.open(mcp.Legacy, "X-Api-Key", testKey)
	h.legacy(session, "tools/call", `{"name":"call_tool_destructive","arguments":`+call+`}`, "X-Api-Key", testKey).tool()
	c = h.gw.lastCall(t).Caller
	if c.Actor.Kind != auth.Admin || c.ClientName != "tester" || c.ClientVersion != "9" || c.SessionID == "" || strings.Contains(session, c.SessionID) {
		t.Errorf("%+v", c)
	}
	for id, want := range map[string]string{`12`: "12", `"abc"`: "abc", `"a\u00e9"`: "aé", `9007199254740993`: "9007199254740993"} {
		h.post(map[string]string{mcp.HeaderSession: h.open(mcp.Legacy)}, `{"jsonrpc":"2.0","id":`+id+`,"method":"tools/call","params":{"name":"call_tool_read","arguments":{}}}`).is(200)
		if got := h.gw.lastCall(t).Caller.RequestID; got != want {
			t.Errorf("id %s: %q", id, got)
		}
	}
}

func TestMetaIsForwarded(t *testing.T) {
	h := newHarness(t)
	for _, tt := range []struct{ meta, want string }{
		{`"progressToken":"t"`, `{"progressToken":"t"}`},
		{`"progressToken":1,"traceparent":"00-x","vendor/key":{"a": 1.50}`, `{"progressToken":1,"traceparent":"00-x","vendor/key":{"a": 1.50}}`},
		{`"io.modelcontextprotocol/logLevel":"debug"`, ``},
		{`"a\"b":1`, `{"a\"b":1}`},
	} {
		h.modern("tools/call", `"name":"call_tool_read","arguments":{}`, "x", "x")
		body := `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"call_tool_read","arguments":{},` +
			strings.TrimSuffix(modernMeta, "}") + `,` + tt.meta + `}}}`
		h.post(map[string]string{mcp.HeaderVersion: mcp.Modern, mcp.HeaderMethod: "tools/call", mcp.HeaderName: "call_tool_read"}, body).tool()
		if got := string(h.gw.lastCall(t).Meta); got != tt.want {
			t.Errorf("%s: %s", tt.meta, got)
		}
	}
	session := h.open(mcp.Legacy)
	h.legacy(session, "tools/call", `{"name":"call_tool_read","_meta":{"progressToken": 5}}`).tool()
	if got := string(h.gw.lastCall(t).Meta); got != `{"progressToken": 5}` {
		t.Errorf("%s", got)
	}
	h.legacy(session, "tools/call", `{"name":"call_tool_read"}`).tool()
	if got := h.gw.lastCall(t).Meta; got != nil {
		t.Errorf("%s", got)
	}
}

func TestRefusal(t *testing.T) {
	h := newHarness(t)
	p := problem.New(problem.ServerMismatch, "Tool 'github:delete_repo' is marked destructive by server, use call_tool_destructive instead of call_tool_read",
		"Use <that> & no other.").With("call_with", "call_tool_destructive")
	h.gw.call = func(ctxT, gate.LaneCall) (gate.CallResult, error) { return gate.CallResult{}, p }
	for _, a := range []answer{
		h.callModern(callToolRead, `{"name":"github:delete_repo"}`),
		h.callLegacy(h.open(mcp.Legacy), callToolRead, `{"name":"github:delete_repo"}`),
	} {
		got := a.refused(problem.ServerMismatch)
		if got.Message != p.Message || got.Hint != p.Hint || string(got.Details["call_with"]) != `"call_tool_destructive"` {
			t.Errorf("%s", a.body)
		}
	}
	if r := h.callModern(callToolRead, `{}`).tool(); r.ResultType != "complete" || r.Meta[mcp.MetaServerInfo] == nil {
		t.Errorf("%+v", r)
	}
	h.gw.call = func(ctxT, gate.LaneCall) (gate.CallResult, error) {
		return gate.CallResult{}, errors.New("secret detail")
	}
	a := h.callModern(callToolRead, `{}`)
	a.refused(problem.Internal)
	if strings.Contains(string(a.body), "secret detail") || !strings.Contains(h.logs.String(), "secret detail") {
		t.Error("the cause belongs into the log and nowhere else")
	}
	h.gw.call = func(ctxT, gate.LaneCall) (gate.CallResult, error) {
		return gate.CallResult{Result: json.RawMessage(`[]`)}, nil
	}
	h.callModern(callToolRead, `{}`).refused(problem.UpstreamError)
	h.gw.call = func(ctxT, gate.LaneCall) (gate.CallResult, error) {
		return gate.CallResult{}, problem.New(problem.Timeout, "x", "").With("bad", func() {})
	}
	h.callModern(callToolRead, `{}`).refused(problem.Timeout)
}

func TestUnknownTool(t *testing.T) {
	h := newHarness(t)
	session := h.open(mcp.Legacy)
	m := h.callLegacy(session, "call_tool", `{"name":"a:b"}`).is(200).fails(wirejson.CodeInvalidParams)
	const want = "Tool 'call_tool' not found. Use call_tool_read, call_tool_write, or call_tool_destructive with matching intent.operation_type. See retrieve_tools for annotations and recommendations."
	if m.Error.Message != want {
		t.Errorf("%q", m.Error.Message)
	}
	if m := h.callModern("call_tool", `{"name":"a:b"}`).is(400).fails(wirejson.CodeInvalidParams); m.Error.Message != want {
		t.Errorf("%q", m.Error.Message)
	}
	for name, say := range map[string]string{
		"call_tool_raed": "call_tool_read", "retrieve_tool": "retrieve_tools", "readResult": "read_result", "upstream_server": "upstream_servers",
		"github:create_issue": "call_tool_write", "zzzzzzzzzzzz": "retrieve_tools",
	} {
		m := h.callLegacy(session, name, `{}`).is(200).fails(wirejson.CodeInvalidParams)
		if !strings.Contains(m.Error.Message, say) || !strings.Contains(m.Error.Message, "'"+name+"'") {
			t.Errorf("%s: %s", name, m.Error.Message)
		}
	}
	long := h.callLegacy(session, strings.Repeat("x", 100000), `{}`).fails(wirejson.CodeInvalidParams)
	if len(long.Error.Message) > 1000 {
		t.Errorf("%d bytes", len(long.Error.Message))
	}
	if h.gw.count() != 0 {
		t.Error("a call came through")
	}
}

func TestPanic(t *testing.T) {
	h := newHarness(t)
	h.gw.call = func(_ ctxT, r gate.LaneCall) (gate.CallResult, error) {
		if r.Say != nil && r.Name == "stream" {
			r.Say(session.Event{Method: "notifications/progress", Params: json.RawMessage(`{"progressToken":1,"progress":1}`)})
		}
		panic("boom")
	}
	m := h.callModern(callToolRead, `{"name":"a"}`).is(500).fails(wirejson.CodeInternal)
	if string(m.ID) != "7" || strings.Contains(m.Error.Message, "boom") {
		t.Errorf("%+v", m)
	}
	if !strings.Contains(h.logs.String(), "boom") {
		t.Error("not in the log")
	}
	// A partial answer is not completed.
	req, _ := http.NewRequest("POST", h.http.URL, strings.NewReader(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"call_tool_read","arguments":{"name":"stream"},`+modernMeta+`}}`))
	req.Header = http.Header{"Content-Type": typeJSON, "Accept": {"text/event-stream, application/json"}, mcp.HeaderVersion: {mcp.Modern}, mcp.HeaderMethod: {"tools/call"}, mcp.HeaderName: {"call_tool_read"}}
	res, err := h.http.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if data, err := io.ReadAll(res.Body); err == nil {
		t.Errorf("ended like a good answer: %s", data)
	}
	h.modern("server/discover", "").is(200)
}

// Notifications are sent in order, as they arrive, before the response.
func TestStreamedCall(t *testing.T) {
	h := newHarness(t)
	id := h.open(mcp.Legacy)
	next := make(chan struct{})
	h.gw.call = func(_ ctxT, r gate.LaneCall) (gate.CallResult, error) {
		for i := range 3 {
			<-next
			r.Say(session.Event{Method: "notifications/progress", Params: json.RawMessage(`{"progressToken":"t","progress":` + string(rune('0'+i)) + "}")})
		}
		r.Say(session.Event{Method: "notifications/message", Params: json.RawMessage(`{"level":"info","data":"hi"}`)})
		r.Say(session.Event{Method: "notifications/tools/list_changed"})
		return gate.CallResult{Result: json.RawMessage("{\n\"content\":[]\n}")}, nil
	}
	call := func(header map[string]string, meta string) *openStream {
		all := map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
		for k, v := range header {
			all[k] = v
		}
		return h.openStream("POST", all, `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"call_tool_read","arguments":{}`+meta+`}}`)
	}
	for name, legacy := range map[string]bool{"session": true, "modern": false} {
		header, meta := map[string]string{mcp.HeaderSession: id}, ""
		if !legacy {
			header, meta = map[string]string{mcp.HeaderVersion: mcp.Modern, mcp.HeaderMethod: "tools/call", mcp.HeaderName: "call_tool_read"}, ","+modernMeta
		}
		go func() { next <- struct{}{} }() // the header of the stream comes with the first event
		st := call(header, meta)
		for i := range 3 {
			want := `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":` + string(rune('0'+i)) + `}}`
			if got := st.next(); got != want {
				t.Errorf("%s: %s", name, got)
			}
			if i < 2 {
				next <- struct{}{}
			}
		}
		last := st.next()
		if legacy {
			if !strings.Contains(last, "notifications/message") {
				t.Errorf("%s: %s", name, last)
			}
			last = st.next()
		}
		var m rpcAnswer
		if err := json.Unmarshal([]byte(last), &m); err != nil || string(m.ID) != "7" || m.Result == nil {
			t.Errorf("%s: %v %s", name, err, last)
		}
		if more := st.next(); more != "" {
			t.Errorf("%s: more: %s", name, more)
		}
	}
	// A client that accepts no stream gets none.
	h.gw.call = func(_ ctxT, r gate.LaneCall) (gate.CallResult, error) {
		if r.Say != nil {
			t.Error("Say is given")
		}
		return gate.CallResult{Result: json.RawMessage(`{}`)}, nil
	}
	h.legacy(id, "tools/call", `{"name":"call_tool_read"}`, "Accept", "application/json").tool()
	h.legacy(id, "tools/call", `{"name":"call_tool_read"}`, "Accept", "-").tool()
	// A client that accepts nothing else gets one.
	h.gw.call = nil
	st := call(map[string]string{mcp.HeaderSession: id, "Accept": "text/event-stream"}, "")
	if got := st.next(); !strings.Contains(got, `"id":7`) {
		t.Error(got)
	}
	// A refusal travels on the stream as well.
	h.gw.call = func(_ ctxT, r gate.LaneCall) (gate.CallResult, error) {
		r.Say(session.Event{Method: "notifications/progress", Params: json.RawMessage(`{}`)})
		return gate.CallResult{}, problem.New(problem.Timeout, "too slow", "")
	}
	st = call(map[string]string{mcp.HeaderSession: id}, "")
	st.next()
	if got := st.next(); !strings.Contains(got, "too slow") {
		t.Error(got)
	}
}

// A client that closes its connection cancels the call.
func TestDisconnectCancels(t *testing.T) {
	h := newHarness(t)
	entered, left := make(chan struct{}), make(chan error)
	h.gw.call = func(ctx ctxT, _ gate.LaneCall) (gate.CallResult, error) {
		close(entered)
		<-ctx.Done()
		left <- ctx.Err()
		return gate.CallResult{}, ctx.Err()
	}
	ctx, cancel := context.WithCancel(context.Background())
	req, _ := http.NewRequestWithContext(ctx, "POST", h.http.URL, strings.NewReader(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"call_tool_read","arguments":{},`+modernMeta+`}}`))
	req.Header = http.Header{"Content-Type": typeJSON, mcp.HeaderVersion: {mcp.Modern}, mcp.HeaderMethod: {"tools/call"}, mcp.HeaderName: {"call_tool_read"}}
	go func() {
		<-entered
		cancel()
	}()
	if _, err := h.http.Client().Do(req); err == nil {
		t.Error("an answer")
	}
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestCancelledNotification(t *testing.T) {
	t.Run("net/http", func(t *testing.T) {
		h := newHarness(t)
		cancelByNotification(t, h, h.http.Close)
	})
	t.Run("http1", func(t *testing.T) {
		h, stop := newPlainHarness(t)
		cancelByNotification(t, h, stop)
	})
}

// cancelByNotification cancels calls; stop waits for the handlers.
func cancelByNotification(t *testing.T, h *harness, stop func()) {
	session, other := h.open(mcp.Legacy), h.open(mcp.Legacy)
	entered, left := make(chan struct{}), make(chan error)
	h.gw.call = func(ctx ctxT, _ gate.LaneCall) (gate.CallResult, error) {
		entered <- struct{}{}
		<-ctx.Done()
		left <- context.Cause(ctx)
		return gate.CallResult{}, ctx.Err()
	}
	for _, accept := range []string{"application/json", "application/json, text/event-stream"} {
		for _, id := range []string{`7`, `"7"`} {
			got := make(chan answer)
			go func() {
				got <- h.post(map[string]string{mcp.HeaderSession: session, "Accept": accept},
					`{"jsonrpc":"2.0","id":`+id+`,"method":"tools/call","params":{"name":"call_tool_read","arguments":{}}}`)
			}()
			<-entered
			for _, miss := range []struct{ session, id string }{{other, id}, {session, `8`}, {session, `null`}, {session, `"x"`}} {
				h.post(map[string]string{mcp.HeaderSession: miss.session}, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+miss.id+`}}`).is(202)
			}
			h.post(map[string]string{mcp.HeaderSession: session}, `{"jsonrpc":"2.0","method":"notifications/cancelled"}`).is(202)
			select {
			case err := <-left:
				t.Fatalf("cancelled by another caller: %v", err)
			default:
			}
			h.post(map[string]string{mcp.HeaderSession: session}, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+id+`,"reason":"x"}}`).is(202)
			if err := <-left; !errors.Is(err, errCancelled) {
				t.Error(err)
			}
			a := (<-got).is(200)
			if accept == "application/json" {
				a.fails(codeCancelled)
			} else if strings.Contains(string(a.body), "data:") {
				t.Errorf("a response to what was cancelled: %s", a.body)
			}
		}
	}
	stop() // they end after their answers are out
	if s := h.srv.sessions.byID[session]; s.inflight != nil || s.busy != 0 {
		t.Error("something is left behind")
	}
}

// quietWriter is a ResponseWriter whose reader can stall.
type quietWriter struct {
	header http.Header
	gate   chan struct{} // nil: never stalls
	got    lockedBuffer
	code   int
}

func (w *quietWriter) Header() http.Header { return w.header }
func (w *quietWriter) WriteHeader(code int) {
	w.code = code
}
func (w *quietWriter) Write(p []byte) (int, error) {
	if w.gate != nil {
		<-w.gate
		return 0, errors.New("the reader has stalled")
	}
	return w.got.Write(p)
}
func (w *quietWriter) FlushError() error { return nil }

// A long call sends keep-alives.
func TestKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gw := &fakeGateway{call: func(ctxT, gate.LaneCall) (gate.CallResult, error) {
			time.Sleep(50 * time.Second)
			return gate.CallResult{Result: json.RawMessage(`{}`)}, nil
		}}
		s := plainServer(gw)
		w := &quietWriter{header: http.Header{}}
		s.ServeHTTP(w, modernCall())
		got := w.got.String()
		if n := strings.Count(got, ": keep-alive\n\n"); n != 3 || !strings.HasSuffix(got, "}\n\n") || strings.Count(got, "data: ") != 1 {
			t.Errorf("%q", got)
		}
	})
}

// A client that does not read delays no other: notifications are accepted at once, excess ones are dropped, and in the end the
// call is cancelled.
func TestStalledReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &quietWriter{header: http.Header{}, gate: make(chan struct{})}
		gw := &fakeGateway{call: func(ctx ctxT, r gate.LaneCall) (gate.CallResult, error) {
			start := time.Now()
			for range 10_000 {
				r.Say(session.Event{Method: "notifications/progress", Params: json.RawMessage(`{"progressToken":1,"message":"` + strings.Repeat("x", 1000) + `"}`)})
			}
			if d := time.Since(start); d != 0 {
				t.Errorf("the upstream had to wait %s", d)
			}
			time.AfterFunc(30*time.Second, func() { close(w.gate) }) // as the write deadline does
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), errStalled) {
				t.Error(context.Cause(ctx))
			}
			r.Say(session.Event{Method: "notifications/progress", Params: json.RawMessage(`{}`)})
			return gate.CallResult{}, ctx.Err()
		}}
		s := plainServer(gw)
		s.ServeHTTP(w, modernCall())
		if w.got.String() != "" {
			t.Error("something was written")
		}
	})
}

func modernCall() *http.Request {
	r, _ := http.NewRequest("POST", "http://localhost/mcp", strings.NewReader(
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"call_tool_read","arguments":{"name":"a:b"},`+modernMeta+`}}`))
	r.Header = http.Header{"Content-Type": typeJSON, "Accept": {"application/json, text/event-stream"},
		mcp.HeaderVersion: {mcp.Modern}, mcp.HeaderMethod: {"tools/call"}, mcp.HeaderName: {"call_tool_read"}}
	return r
}

// A notification that comes too late is dropped.
func TestLateNotification(t *testing.T) {
	h := newHarness(t)
	var late func(session.Event)
	h.gw.call = func(_ ctxT, r gate.LaneCall) (gate.CallResult, error) {
		late = r.Say
		return gate.CallResult{Result: json.RawMessage(`{}`)}, nil
	}
	h.callModern(callToolRead, `{}`).tool()
	late(session.Event{Method: "notifications/progress", Params: json.RawMessage(`{}`)})
	h.callModern(callToolRead, `{}`).tool()
}
