package mcpserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcpproxy/internal/config"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/testutil/volume"
)

func TestInitialize(t *testing.T) {
	h := newHarness(t)
	for asked, want := range map[string]string{
		`"2024-11-05"`: "2024-11-05", `"2025-03-26"`: "2025-03-26", `"2025-06-18"`: "2025-06-18", `"2025-11-25"`: "2025-11-25",
		`"2026-07-28"`: "2025-11-25", `"2030-01-01"`: "2025-11-25", `"nonsense"`: "2025-11-25", `""`: "2025-11-25", `5`: "2025-11-25", `null`: "2025-11-25",
	} {
		a := h.post(nil, `{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":`+asked+`,"capabilities":{}}}`).is(200)
		var r struct {
			ProtocolVersion string                     `json:"protocolVersion"`
			Capabilities    map[string]json.RawMessage `json:"capabilities"`
			ServerInfo      struct{ Name, Version string }
			Instructions    string
		}
		if err := json.Unmarshal(a.rpc().Result, &r); err != nil {
			t.Fatal(err)
		}
		if r.ProtocolVersion != want || len(r.Capabilities) != 1 || string(r.Capabilities["tools"]) != `{"listChanged":true}` ||
			r.ServerInfo.Name != "mcpproxy" || r.ServerInfo.Version != "1.2.3" || r.Instructions == "" {
			t.Errorf("%s: %s", asked, a.body)
		}
		if id := a.header.Get(mcp.HeaderSession); len(id) < 26 || strings.Trim(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") != "" {
			t.Errorf("session id %q", id)
		}
	}
	// A request initialize opens a session, with any value of its header.
	for _, header := range []string{"2025-11-25", "2026-07-28", "2030-01-01"} {
		h.post(map[string]string{mcp.HeaderVersion: header}, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`).is(200)
	}
	h.post(nil, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":[]}`).is(400).fails(wirejson.CodeInvalidParams)
	h.post(nil, `{"jsonrpc":"2.0","id":1,"method":"initialize"}`).is(200)
}

func TestSession(t *testing.T) {
	h := newHarness(t)
	session := h.open("2025-06-18")
	other := h.open("2025-06-18")
	if session == other {
		t.Fatal("two sessions with one id")
	}
	notification := `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	if a := h.post(map[string]string{mcp.HeaderSession: session}, notification).is(202); len(a.body) > 0 {
		t.Errorf("a body: %s", a.body)
	}
	h.post(map[string]string{mcp.HeaderSession: session}, `{"jsonrpc":"2.0","id":3,"result":{}}`).is(202)
	if r := h.legacy(session, "ping", "").is(200).rpc(); string(r.Result) != "{}" {
		t.Errorf("ping: %s", r.Result)
	}
	h.legacy(session, "tools/list", "").is(200)
	for _, v := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"} {
		h.legacy(session, "ping", "", mcp.HeaderVersion, v).is(200)
	}
	h.legacy(session, "ping", "", mcp.HeaderVersion, "1999-01-01").is(400).fails(mcp.CodeUnsupportedVersion)
	for _, method := range []string{"resources/list", "prompts/list", "logging/setLevel", "completion/complete", "server/discover", "subscriptions/listen", "x"} {
		h.legacy(session, method, "").is(200).fails(wirejson.CodeMethodNotFound)
	}
	h.legacy(session, "tools/call", `{}`).is(200).fails(wirejson.CodeInvalidParams)
	h.legacy(session, "tools/call", `[]`).is(400).fails(wirejson.CodeInvalidParams)

	// Requests without a session, and with an unknown, a foreign and an ended session.
	h.post(nil, `{"jsonrpc":"2.0","id":7,"method":"tools/list"}`).is(400).fails(wirejson.CodeInvalidRequest)
	h.post(nil, notification).is(400)
	h.legacy("nonsense", "ping", "").is(404).fails(wirejson.CodeInvalidRequest)
	h.legacy(session, "ping", "", "X-Api-Key", testKey).is(404)
	admins := h.open("2025-06-18", "X-Api-Key", testKey)
	h.legacy(admins, "ping", "").is(404)
	h.legacy(admins, "ping", "", "X-Api-Key", testKey).is(200)
	h.do("DELETE", map[string]string{mcp.HeaderSession: admins}, "").is(404)
	h.do("DELETE", map[string]string{mcp.HeaderSession: session, mcp.HeaderVersion: "2025-06-18"}, "").is(204)
	h.legacy(session, "ping", "").is(404)
	h.do("DELETE", map[string]string{mcp.HeaderSession: session}, "").is(404)
	h.do("GET", map[string]string{mcp.HeaderSession: session, "Accept": "text/event-stream"}, "").is(404)
	h.legacy(other, "ping", "").is(200)
	h.srv.Close()
	h.legacy(other, "ping", "").is(404)
}

func TestGetStream(t *testing.T) {
	h := newHarness(t)
	session := h.open(mcp.Legacy)
	header := map[string]string{mcp.HeaderSession: session, "Accept": "text/event-stream"}
	h.do("GET", map[string]string{mcp.HeaderSession: session, "Accept": "application/json"}, "").is(406)
	one := h.openStream("GET", header, "")
	two := h.openStream("GET", header, "")
	one.close()
	h.do("DELETE", map[string]string{mcp.HeaderSession: session}, "").is(204)
	if got := two.next(); got != "" {
		t.Errorf("an event: %s", got)
	}
	h.open(mcp.Legacy)
	header[mcp.HeaderSession] = h.open(mcp.Legacy)
	three := h.openStream("GET", header, "")
	h.srv.Close()
	if got := three.next(); got != "" {
		t.Errorf("an event: %s", got)
	}
}

func TestBatch(t *testing.T) {
	h := newHarness(t)
	session := h.open(mcp.BatchVersion)
	header := map[string]string{mcp.HeaderSession: session}
	a := h.post(header, `[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/initialized"},`+
		`{"jsonrpc":"2.0","id":"two","method":"tools/call","params":{"name":"call_tool_write","arguments":{"name":"a:b"}}},{"jsonrpc":"2.0","id":9,"result":{}},`+
		`{"jsonrpc":"2.0","id":3,"method":"nope"},{"jsonrpc":"2.0","id":4,"method":"initialize"},{"id":5,"method":"ping"}]`).is(200)
	var all []rpcAnswer
	if err := json.Unmarshal(a.body, &all); err != nil || len(all) != 5 {
		t.Fatalf("%v: %s", err, a.body)
	}
	for i, want := range []string{`1`, `"two"`, `3`, `4`, `5`} {
		if string(all[i].ID) != want || (all[i].Error != nil) != (i > 1) {
			t.Errorf("answer %d: %s", i, a.body)
		}
	}
	if h.gw.lastCall(t).Caller.RequestID != "two" {
		t.Error("wrong request id")
	}
	h.post(header, `[{"jsonrpc":"2.0","method":"notifications/initialized"}]`).is(202)
	h.post(header, `[]`).is(400).fails(wirejson.CodeInvalidRequest)
	h.post(header, `[1`).is(400).fails(wirejson.CodeParse)
	h.post(header, `[{"a":1,"a":2}]`).is(400).fails(wirejson.CodeParse)
	h.post(header, `[`+strings.Repeat(`{},`, 1000)+`{}]`).is(400).fails(wirejson.CodeInvalidRequest)
	h.post(header, `[1]`).is(200)
	one := `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`
	for _, version := range []string{"2024-11-05", "2025-06-18", "2025-11-25"} {
		h.post(map[string]string{mcp.HeaderSession: h.open(version)}, one).is(400).fails(wirejson.CodeInvalidRequest)
	}
	h.post(nil, one).is(400).fails(wirejson.CodeInvalidRequest)
	h.post(map[string]string{mcp.HeaderSession: "x"}, one).is(404)
	h.post(map[string]string{mcp.HeaderSession: session, mcp.HeaderVersion: mcp.Modern}, one).is(400)
}

// Neither the number of requests in a batch nor the size of their responses can make the server send far more than it
// received.
func TestBatchBounds(t *testing.T) {
	h := newHarness(t)
	header := map[string]string{mcp.HeaderSession: h.open(mcp.BatchVersion)}
	const one = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"call_tool_read","arguments":{"name":"a:b"}}}`
	batch := func(n, ran int, bound string) {
		t.Helper()
		before := h.gw.count()
		a := h.post(header, "["+strings.Repeat(one+",", n-1)+one+"]").is(200)
		var all []rpcAnswer
		if err := json.Unmarshal(a.body, &all); err != nil || len(all) != n {
			t.Fatalf("%v: %d answers", err, len(all))
		}
		for i, answer := range all {
			if refused := answer.Error != nil; refused != (i >= ran) || string(answer.ID) != "1" {
				t.Fatalf("answer %d: refused %v, id %s", i, refused, answer.ID)
			} else if refused && !strings.Contains(answer.Error.Message, bound) {
				t.Fatalf("the bound is not named: %s", answer.Error.Message)
			}
		}
		if got := h.gw.count() - before; got != ran {
			t.Errorf("%d calls, want %d", got, ran)
		}
	}
	batch(maxBatchRun, maxBatchRun, "")
	batch(100, maxBatchRun, "16 requests")
	large := json.RawMessage(`{"content":[{"type":"text","text":"` + strings.Repeat("x", maxBatchAnswer/4) + `"}]}`)
	h.gw.call = func(ctxT, gate.LaneCall) (gate.CallResult, error) {
		return gate.CallResult{Result: large}, nil
	}
	batch(9, 4, "8 MiB")
}

// direct sends a request to the handler without a network, as synctest needs
// it, and returns status and header.
func direct(s *Server, header map[string]string, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("POST", "http://localhost/mcp", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for k, v := range header {
		r.Header.Set(k, v)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

func plainServer(gw BuiltinToolBackend) *Server {
	cfg := &config.Config{MCPManagement: config.ManagePropose}
	return newServer(gw, func() *config.Config { return cfg }, &lockedBuffer{})
}

const initializeBody = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","clientInfo":{"name":"tester","version":"9"}}}`

func TestSessionExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := plainServer(&fakeGateway{})
		id := direct(s, nil, initializeBody).Header().Get(mcp.HeaderSession)
		ping := func() int {
			return direct(s, map[string]string{mcp.HeaderSession: id}, `{"jsonrpc":"2.0","id":1,"method":"ping"}`).Code
		}
		for range 3 {
			time.Sleep(23 * time.Hour)
			if code := ping(); code != 200 {
				t.Fatalf("a session in use: %d", code)
			}
		}
		time.Sleep(25 * time.Hour)
		if code := ping(); code != 404 {
			t.Fatalf("a forgotten session: %d", code)
		}
		// Abandoned requests leave nothing behind.
		for range 10 {
			direct(s, nil, initializeBody)
		}
		time.Sleep(25 * time.Hour)
		direct(s, nil, initializeBody)
		if n := len(s.sessions.byID); n != 1 || s.sessions.unused.Len()+s.sessions.order.Len() != 1 {
			t.Errorf("%d sessions", n)
		}
	})
}

func TestSessionsAreBounded(t *testing.T) {
	ss := newSessionTable()
	agent := auth.Actor{Kind: auth.Agent}
	// Each is asked for something, and there is no connection with many.
	one := func() *sessionEntry {
		s, err := openedBy(ss, agent, fmt.Sprint(len(ss.byID)%10))
		if err != nil {
			t.Fatal(err)
		}
		ss.acquireSession(s.id, agent, "").releaseUse(true)
		return s
	}
	first := one()
	busy := ss.acquireSession(first.id, agent, "")
	second, third := one(), one()
	for len(ss.byID) < maxSessions {
		one()
	}
	ss.acquireSession(second.id, agent, "").releaseUse(true)
	one()
	if len(ss.byID) != maxSessions {
		t.Errorf("%d sessions", len(ss.byID))
	}
	if ss.acquireSession(third.id, agent, "") != nil {
		t.Error("the one unused for longest is still there")
	}
	if ss.acquireSession(first.id, agent, "") == nil || ss.acquireSession(second.id, agent, "") == nil {
		t.Error("a busy or a used one is gone")
	}
	busy.releaseUse(true)
	for _, s := range ss.byID {
		ss.acquireSession(s.id, agent, "") // all busy
	}
	if _, err := openedBy(ss, agent, "another"); err == nil {
		t.Error("no bound")
	}
	if len(ss.byID) != maxSessions {
		t.Errorf("%d sessions", len(ss.byID))
	}
}

func TestSessionMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("measures")
	}
	s := plainServer(&fakeGateway{})
	const n = 1000
	heap := func() int64 { // less than before, when what other tests left was collected
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	direct(s, nil, initializeBody)
	before, goroutines := heap(), runtime.NumGoroutine()
	ids := make([]string, n)
	for i := range ids {
		ids[i] = direct(s, nil, initializeBody).Header().Get(mcp.HeaderSession)
	}
	each := (heap() - before) / n
	t.Logf("%d bytes per idle session", each)
	if each > 2048 {
		t.Errorf("%d bytes per idle session", each)
	}
	if now := runtime.NumGoroutine(); now > goroutines {
		t.Errorf("%d goroutines, before %d", now, goroutines)
	}
	for _, id := range ids {
		s.sessions.endSession(s.sessions.acquireSession(id, auth.Actor{Kind: auth.Agent}, ""))
	}
	if len(s.sessions.byID) != 1 {
		t.Error("sessions are left behind")
	}
}

// A thousand sessions at once: every response belongs to its own request.
func TestManySessions(t *testing.T) {
	if testing.Short() {
		t.Skip("a thousand sessions")
	}
	h := newHarness(t)
	h.gw.call = func(_ ctxT, r gate.LaneCall) (gate.CallResult, error) {
		return gate.CallResult{Result: json.RawMessage(fmt.Sprintf(`{"content":[],"echo":%s,"session":%q}`, r.Args, r.Caller.SessionID))}, nil
	}
	h.http.Client().Transport.(*http.Transport).MaxIdleConnsPerHost = 64
	sessions, calls := 1000, 5
	if testing.Short() {
		sessions = 100
	}
	ids := make([]string, sessions)
	for i := range ids {
		ids[i] = h.open(mcp.Legacy)
	}
	work := make(chan int)
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			for k := range work {
				id := ids[k%sessions]
				res, err := http.NewRequest("POST", h.http.URL, strings.NewReader(fmt.Sprintf(
					`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"call_tool_read","arguments":{"name":"a:b","args":{"n":%d}}}}`, k, k)))
				if err != nil {
					t.Error(err)
					return
				}
				res.Header = http.Header{"Content-Type": typeJSON, mcp.HeaderSession: {id}}
				got, err := h.http.Client().Do(res)
				if err != nil {
					t.Error(err)
					return
				}
				var m struct {
					ID     int
					Result struct {
						Echo    struct{ N int }
						Session string
					}
				}
				err = json.NewDecoder(got.Body).Decode(&m)
				got.Body.Close()
				if err != nil || m.ID != k || m.Result.Echo.N != k || m.Result.Session != sessionRecordID(id) {
					t.Errorf("%d: %v %+v", k, err, m)
				}
			}
		})
	}
	for k := range sessions * calls {
		work <- k
	}
	close(work)
	wg.Wait()
}

func TestSessionIDs(t *testing.T) {
	ss := newSessionTable()
	seen := map[string]bool{}
	for range volume.FullOrQuick(20_000, 2_000) {
		s, err := opened(ss, auth.Actor{Kind: auth.Agent})
		if err != nil {
			t.Fatal(err)
		}
		if seen[s.id] || seen[s.record] || strings.Contains(s.record, s.id) {
			t.Fatal("an id twice")
		}
		seen[s.id], seen[s.record] = true, true
	}
}

// opened is a session that has just been opened.
func opened(ss *sessionTable, actor auth.Actor) (*sessionEntry, *wirejson.RPCError) {
	return openedBy(ss, actor, "")
}

// openedBy is one that was opened over that connection.
func openedBy(ss *sessionTable, actor auth.Actor, conn string) (*sessionEntry, *wirejson.RPCError) {
	s := &sessionEntry{openerIdentity: openerIdentity{actor, conn}, version: mcp.Legacy, session: closingSession{}}
	s.assignID(newRandomID(""))
	if err := ss.addSession(s); err != nil {
		return nil, err
	}
	return s, nil
}

// closingSession can be closed, and no more.
type closingSession struct{ session.Session }

func (closingSession) Close() {}
