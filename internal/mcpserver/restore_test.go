package mcpserver

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcpproxy/internal/config"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/testutil/mcptest"
	"mcpproxy/internal/upstream"
	"mcpproxy/internal/upstream/compat"
)

// memoryStore is a SessionStore that can be away.
type memoryStore struct {
	mu    sync.Mutex
	key   []byte
	ended map[string]time.Time
	away  error
}

func (m *memoryStore) SessionKey(_ context.Context, key []byte) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.key == nil && m.away == nil {
		m.key = key
	}
	return m.key, m.away
}

func (m *memoryStore) SaveEndedSessions(_ context.Context, until map[string]time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended == nil {
		m.ended = map[string]time.Time{}
	}
	if m.away == nil {
		maps.Copy(m.ended, until)
	}
	return m.away
}

func (m *memoryStore) IsSessionEnded(_ context.Context, record string) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.ended[record].IsZero(), m.away
}

func (m *memoryStore) setAway(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.away = err
}

// process is one life of a server: the same store, the same servers behind it, and another process.
type process struct {
	*harness
	stop func() // ends it; its ended sessions are saved
}

// startProcess starts a server with an API key.
func startProcess(t *testing.T, store SessionStore, key string, at func(string) session.Endpoint) process {
	h := &harness{t: t, gw: &fakeGateway{}, logs: &lockedBuffer{}}
	h.cfg.Store(&config.Config{MCPManagement: config.ManagePropose})
	plain := newServer(h.gw, h.cfg.Load, h.logs)
	d := plain.Deps
	d.SessionStore, d.All, d.Lanes, d.At = store, plain.BuiltIn, map[string]session.Endpoint{"read": plain.BuiltIn, "write": plain.BuiltIn}, at
	d.Auth = auth.NewAuthenticator(key, nil)
	d.Profiles = func(name string) *auth.ScopeRule {
		if name == "x" || name == "y" {
			return &auth.ScopeRule{}
		}
		return nil
	}
	h.srv = New(d)
	h.http = httptest.NewServer(h.srv)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); h.srv.Run(ctx) }()
	stop := sync.OnceFunc(func() {
		h.srv.Close()
		h.http.Close()
		cancel()
		<-done
	})
	t.Cleanup(stop)
	return process{h, stop}
}

// ask sends a message to a path in a session, with further headers, and returns status and body.
func (p process) ask(method, path, id, body string, header ...string) (int, string) {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), method, p.http.URL+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set(mcp.HeaderSession, id)
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	var out strings.Builder
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		out.WriteString(lines.Text())
	}
	return resp.StatusCode, out.String()
}

// open opens a session at a path, with further headers.
func (p process) open(path string, header ...string) string {
	p.t.Helper()
	req, _ := http.NewRequestWithContext(p.t.Context(), http.MethodPost, p.http.URL+path, strings.NewReader(relayHello))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	id := resp.Header.Get(mcp.HeaderSession)
	if resp.StatusCode != http.StatusOK || id == "" {
		p.t.Fatalf("%s: %d, session %q", path, resp.StatusCode, id)
	}
	return id
}

// getsNoStream wants a request for a stream to get no answer: a client would take any for the end of its session.
func (p process) getsNoStream(id string) {
	p.t.Helper()
	req, _ := http.NewRequestWithContext(p.t.Context(), http.MethodGet, p.http.URL+"/mcp", nil)
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set(mcp.HeaderSession, id)
	if resp, err := http.DefaultClient.Do(req); err == nil {
		p.t.Errorf("a stream gets %s", resp.Status)
		_ = resp.Body.Close()
	}
}

// oneServer is the endpoint of a real server, over HTTP. stop ends MCPProxy's connections to it.
func oneServer(t *testing.T, server *mcptest.Server) (at func(string) session.Endpoint, stop func()) {
	address := mcptest.Serve(t, server).URL
	set := &throughSet{ServerSet: compat.NewServerSet(upstream.Options{})}
	set.ApplySpecs([]upstream.Spec{{Name: "one", Transport: upstream.HTTP, URL: address}})
	stop = sync.OnceFunc(func() { _ = set.Close(context.Background()) })
	t.Cleanup(stop)
	return set.At, stop
}

const readCallBody = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"call_tool_read","arguments":{"name":"a:b"}}}`

// TestSessionsSurviveRestarts checks that a session on every address continues in the next process, with the same
// client and the same ID in records, and without a second initialize by the client.
func TestSessionsSurviveRestarts(t *testing.T) {
	store, server := &memoryStore{}, mcptest.New(mcptest.Options{}, mcptest.SampleTools()...)
	at, stop := oneServer(t, server)
	first := startProcess(t, store, testKey, at)
	ids := map[string]string{}
	for _, path := range []string{"/mcp", "/mcp/all", "/mcp/all/read", "/mcp/p/x", "/mcp/p/x/all", "/mcp/p/x/all/read", "/mcp/servers/one"} {
		ids[path] = first.open(path)
		if n := len(ids[path]); n > 400 || strings.Trim(ids[path], "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") != "" {
			t.Errorf("%s: the ID has %d characters: %s", path, n, ids[path])
		}
	}
	for life := range 3 {
		first.stop()
		stop()
		at, stop = oneServer(t, server)
		first = startProcess(t, store, testKey, at)
		for path, id := range ids {
			for range 2 {
				if status, body := first.ask(http.MethodPost, path, id, listBody); status != http.StatusOK || !strings.Contains(body, `"tools":[`) {
					t.Errorf("life %d, %s: %d %s", life, path, status, body)
				}
			}
			if path == "/mcp/servers/one" {
				continue
			}
			if status, body := first.ask(http.MethodPost, path, id, readCallBody); status != http.StatusOK {
				t.Errorf("life %d, %s: %d %s", life, path, status, body)
			}
			if c := first.gw.lastCall(t).Caller; c.SessionID != sessionRecordID(id) || c.ClientName != "c" || c.ClientVersion != "1" {
				t.Errorf("life %d, %s: called by %+v", life, path, c)
			}
		}
		if n := first.srv.SessionCount(); n != len(ids) {
			t.Errorf("life %d: %d sessions", life, n)
		}
	}
	opened := 0
	for _, m := range server.Received("initialize") {
		if strings.Contains(string(m.Params), `"clientInfo":{"name":"c","version":"1"}`) {
			opened++
			if !strings.Contains(string(m.Params), `"protocolVersion":"2025-03-26"`) || !strings.Contains(string(m.Params), `"capabilities":{"roots":{}}`) {
				t.Errorf("the server was told %s", m.Params)
			}
		}
	}
	if opened != 4 {
		t.Errorf("the server was initialized %d times for the client, want once in each process", opened)
	}
}

// TestForeignSessionIDs checks that a session ID is valid only with the credential and at the address for which it was
// issued.
func TestForeignSessionIDs(t *testing.T) {
	store := &memoryStore{}
	p := startProcess(t, store, testKey, nil)
	mine, admin := p.open("/mcp/p/x/all"), p.open("/mcp", "X-Api-Key", testKey)
	p.stop()
	const otherKey = "another key of the same length.."
	p = startProcess(t, store, otherKey, nil)
	binding := sessionBinding{"p/x/" + atAll, p.srv.Auth.CredentialHash(auth.Actor{Kind: auth.Agent})}
	params := rebuildParams("2025-11-25", "c", "1", nil)
	signed := func(key []byte, b sessionBinding, age time.Duration) string {
		return newSignedID(key, "", b, time.Now().Add(-age), params)
	}
	last := mine[len(mine)-1]
	for name, c := range map[string]struct {
		path, id string
		header   []string
	}{
		"another surface":       {path: "/mcp/p/x", id: mine},
		"another lane":          {path: "/mcp/p/x/all/read", id: mine},
		"another profile":       {path: "/mcp/p/y/all", id: mine},
		"no profile":            {path: "/mcp/all", id: mine},
		"another credential":    {path: "/mcp/p/x/all", id: mine, header: []string{"X-Api-Key", otherKey}},
		"no credential":         {path: "/mcp", id: admin},
		"a changed API key":     {path: "/mcp", id: admin, header: []string{"X-Api-Key", otherKey}},
		"another key":           {path: "/mcp/p/x/all", id: signed([]byte("forged"), binding, 0)},
		"too old":               {path: "/mcp/p/x/all", id: signed(store.key, binding, maxSessionAge+time.Minute)},
		"empty":                 {path: "/mcp/p/x/all", id: " "},
		"truncated":             {path: "/mcp/p/x/all", id: mine[:len(mine)-8]},
		"only a head":           {path: "/mcp/p/x/all", id: mine[:64]},
		"more":                  {path: "/mcp/p/x/all", id: mine + "AAAAAAAA"},
		"lower case":            {path: "/mcp/p/x/all", id: strings.ToLower(mine)},
		"another prefix":        {path: "/mcp/p/x/all", id: "instance12-" + mine},
		"unused bits set":       {path: "/mcp/p/x/all", id: mine[:len(mine)-1] + string(last+1)},
		"a random one":          {path: "/mcp/p/x/all", id: newRandomID("")},
		"too long":              {path: "/mcp/p/x/all", id: mine + strings.Repeat("A", maxSignedID)},
		"not base32":            {path: "/mcp/p/x/all", id: strings.Repeat("!", len(mine))},
		"the first byte":        {path: "/mcp/p/x/all", id: changed(mine, 0)},
		"the time of the begin": {path: "/mcp/p/x/all", id: changed(mine, 30)},
		"the params":            {path: "/mcp/p/x/all", id: changed(mine, len(mine)/2)},
	} {
		for _, method := range []string{http.MethodPost, http.MethodDelete, http.MethodGet} {
			body := map[string]string{http.MethodPost: listBody}[method]
			if status, said := p.ask(method, c.path, c.id, body, c.header...); status != http.StatusNotFound && !(name == "empty" && status >= 400) {
				t.Errorf("%s, %s: %d %s", name, method, status, said)
			}
		}
	}
	if n := p.srv.SessionCount(); n != 0 || len(store.ended) != 0 {
		t.Errorf("%d sessions, %d ended", n, len(store.ended))
	}
	if status, body := p.ask(http.MethodPost, "/mcp/p/x/all", mine, listBody); status != http.StatusOK {
		t.Errorf("the right one: %d %s", status, body)
	}
	if status, body := p.ask(http.MethodPost, "/mcp/p/x/all", signed(store.key, binding, maxSessionAge-time.Minute), listBody); status != http.StatusOK {
		t.Errorf("one that is almost too old: %d %s", status, body)
	}
}

// changed returns an ID with another character at a position.
func changed(id string, at int) string {
	c := byte('A')
	if id[at] == c {
		c = 'B'
	}
	return id[:at] + string(c) + id[at+1:]
}

// TestTokensKeepTheirSessions: a token is another credential than an earlier one of the same name, and than no token.
func TestTokensKeepTheirSessions(t *testing.T) {
	a := auth.NewAuthenticator(testKey, nil)
	seen := map[[32]byte]auth.Actor{}
	for _, who := range []auth.Actor{{Kind: auth.Agent}, {Kind: auth.Admin}, {Kind: auth.Agent, Name: "ci", ID: "1"}, {Kind: auth.Agent, Name: "ci", ID: "2"}, {Kind: auth.Agent, Name: "cj", ID: "1"}} {
		h := a.CredentialHash(who)
		if other, is := seen[h]; is {
			t.Errorf("%v and %v are the same", who, other)
		}
		seen[h] = who
	}
}

// TestEndedSessionsStayEnded checks that an ended session is not rebuilt, in this process and later ones, however it
// was ended.
func TestEndedSessionsStayEnded(t *testing.T) {
	store := &memoryStore{}
	p := startProcess(t, store, testKey, nil)
	inUse, unknown, again, other := p.open("/mcp"), p.open("/mcp"), p.open("/mcp"), p.open("/mcp")
	end := func(id string, want int) {
		t.Helper()
		if status, body := p.ask(http.MethodDelete, "/mcp", id, ""); status != want {
			t.Errorf("DELETE: %d %s, want %d", status, body, want)
		}
	}
	is := func(id string, want int) {
		t.Helper()
		if status, body := p.ask(http.MethodPost, "/mcp", id, pingBody); status != want {
			t.Errorf("%d %s, want %d", status, body, want)
		}
	}
	end(inUse, http.StatusNoContent)
	is(inUse, http.StatusNotFound)
	end(inUse, http.StatusNotFound)
	p.stop()
	p = startProcess(t, store, testKey, nil)
	is(inUse, http.StatusNotFound)
	end(unknown, http.StatusNoContent) // it was not rebuilt
	is(unknown, http.StatusNotFound)
	is(again, http.StatusOK)
	if n := p.srv.SessionCount(); n != 1 {
		t.Errorf("%d sessions", n)
	}
	// While the store is unavailable, the end of a session applies only in this process, and other sessions are
	// unknown.
	store.setAway(errors.New("away"))
	end(again, http.StatusNoContent)
	is(again, http.StatusNotFound)
	is(other, http.StatusServiceUnavailable)
	end(other, http.StatusServiceUnavailable)
	p.getsNoStream(other)
	store.setAway(nil)
	is(other, http.StatusOK)
	p.stop()
	p = startProcess(t, store, testKey, nil)
	for _, id := range []string{inUse, unknown, again} {
		is(id, http.StatusNotFound)
	}
}

// TestUnsavedEndsAreBounded: while the store is away, the ends that wait for it do not grow without a limit.
func TestUnsavedEndsAreBounded(t *testing.T) {
	r := newSessionRestorer(&memoryStore{away: errors.New("away")})
	for range maxUnsavedEnds + 10 {
		r.markEnded(newRandomID(""), time.Now())
	}
	if n := len(r.unsaved); n != maxUnsavedEnds {
		t.Errorf("%d wait", n)
	}
}

// TestSessionsTheServerEndsStayEnded: if the server has ended a session, the client must learn it, and the ID is not used
// again.
func TestSessionsTheServerEndsStayEnded(t *testing.T) {
	store, server := &memoryStore{}, mcptest.New(mcptest.Options{}, mcptest.SampleTools()...)
	at, _ := oneServer(t, server)
	p := startProcess(t, store, testKey, at)
	id := p.open("/mcp/servers/one")
	server.DropSessions()
	for range 2 {
		if status, body := p.ask(http.MethodPost, "/mcp/servers/one", id, listBody); status != http.StatusNotFound || !strings.Contains(body, "Session not found") {
			t.Errorf("%d %s", status, body)
		}
	}
	p.stop()
	p = startProcess(t, store, testKey, at)
	if status, body := p.ask(http.MethodPost, "/mcp/servers/one", id, listBody); status != http.StatusNotFound {
		t.Errorf("%d %s", status, body)
	}
}

// TestOneRebuildForAll: requests that arrive together after a restart share one rebuild.
func TestOneRebuildForAll(t *testing.T) {
	store, server := &memoryStore{}, mcptest.New(mcptest.Options{}, mcptest.SampleTools()...)
	at, stop := oneServer(t, server)
	p := startProcess(t, store, testKey, at)
	id := p.open("/mcp/servers/one")
	p.stop()
	stop()
	at, _ = oneServer(t, server)
	p = startProcess(t, store, testKey, at)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if status, body := p.ask(http.MethodPost, "/mcp/servers/one", id, listBody); status != http.StatusOK {
				t.Errorf("%d %s", status, body)
			}
		})
	}
	wg.Wait()
	opened := 0
	for _, m := range server.Received("initialize") {
		if strings.Contains(string(m.Params), `"clientInfo":{"name":"c","version":"1"}`) {
			opened++
		}
	}
	if opened != 2 || p.srv.SessionCount() != 1 {
		t.Errorf("the server was initialized %d times for the client; %d sessions", opened, p.srv.SessionCount())
	}
}

// TestStoppingKeepsSessions: a server that stops does not tell clients that their session has ended.
func TestStoppingKeepsSessions(t *testing.T) {
	store := &memoryStore{}
	p := startProcess(t, store, testKey, nil)
	id := p.open("/mcp")
	p.srv.Close()
	if status, body := p.ask(http.MethodPost, "/mcp", id, readCallBody); status != http.StatusServiceUnavailable || !strings.Contains(body, "stopping or restarting") {
		t.Errorf("%d %s", status, body)
	}
	p.getsNoStream(id)
	if len(p.gw.refused) != 1 {
		t.Errorf("%d refused calls are on record", len(p.gw.refused))
	}
	p.stop()
	p = startProcess(t, store, testKey, nil)
	if status, body := p.ask(http.MethodPost, "/mcp", id, readCallBody); status != http.StatusOK {
		t.Errorf("%d %s", status, body)
	}
}

// TestStreamAfterRestart: a stream of before is opened again, and tells once that the tools may have changed.
func TestStreamAfterRestart(t *testing.T) {
	store := &memoryStore{}
	p := startProcess(t, store, testKey, nil)
	id := p.open("/mcp")
	p.stop()
	p = startProcess(t, store, testKey, nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, _ := http.NewRequestWithContext(ctx, http.MethodGet, p.http.URL+"/mcp", nil)
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set(mcp.HeaderSession, id)
	req.Header.Set("Last-Event-Id", "17")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatal(resp.Status)
	}
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "data: ") {
			break
		}
	}
	if got := lines.Text(); got != `data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}` {
		t.Errorf("heard %q", got)
	}
}

// TestIdleSessionsAreRebuilt: a session that was dropped because no one used it, or to make room, is rebuilt while its
// ID is not too old.
func TestIdleSessionsAreRebuilt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := plainServer(&fakeGateway{}).Deps
		d.SessionStore = &memoryStore{}
		s := New(d)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go s.Run(ctx)
		id := direct(s, nil, initializeBody).Header().Get(mcp.HeaderSession)
		for _, step := range []struct {
			wait   time.Duration
			status int
		}{{time.Hour, 200}, {25 * time.Hour, 200}, {20 * 24 * time.Hour, 200}, {11 * 24 * time.Hour, 404}} {
			time.Sleep(step.wait)
			if got := direct(s, map[string]string{mcp.HeaderSession: id}, pingBody).Code; got != step.status {
				t.Errorf("after %v more: %d, want %d", step.wait, got, step.status)
			}
		}
	})
}

// TestSessionsWithoutKey: a client whose description is long, or that comes before the key is there, gets a session that
// ends with the process. A request in an unknown session waits for the key.
func TestSessionsWithoutKey(t *testing.T) {
	p := startProcess(t, &memoryStore{}, testKey, nil)
	long := p.post(nil, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"experimental":{"x":"`+strings.Repeat("x", 500)+`"}}}}`).is(200)
	if id := long.header.Get(mcp.HeaderSession); len(id) != 26 {
		t.Errorf("session %q", id)
	}
	synctest.Test(t, func(t *testing.T) {
		d := plainServer(&fakeGateway{}).Deps
		store := &memoryStore{away: errors.New("away")}
		d.SessionStore = store
		s := New(d)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go s.Run(ctx)
		id := direct(s, nil, initializeBody).Header().Get(mcp.HeaderSession)
		if len(id) != 26 {
			t.Errorf("session %q", id)
		}
		ask := func(id string) int { return direct(s, map[string]string{mcp.HeaderSession: id}, pingBody).Code }
		if got := ask(id); got != 200 {
			t.Errorf("in the session: %d", got)
		}
		if got := ask("X"); got != 503 {
			t.Errorf("in an unknown session: %d", got)
		}
		time.AfterFunc(loadWait/2, func() { store.setAway(nil) })
		if got := ask("X"); got != 404 {
			t.Errorf("in an unknown session once the key is there: %d", got)
		}
		if id := direct(s, nil, initializeBody).Header().Get(mcp.HeaderSession); len(id) < 100 {
			t.Errorf("session %q", id)
		}
	})
}

// TestRebuildAwaitsTools: a request of before a restart is not answered before the tools of before are known, or only after
// a while.
func TestRebuildAwaitsTools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := plainServer(&fakeGateway{}).Deps
		d.SessionStore = &memoryStore{}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s := New(d)
		go s.Run(ctx)
		var ids []string
		for range 2 {
			ids = append(ids, direct(s, nil, initializeBody).Header().Get(mcp.HeaderSession))
		}
		loaded := make(chan struct{})
		d.ToolsLoaded = loaded
		s = New(d)
		go s.Run(ctx)
		ask := func(id string, want time.Duration) {
			t.Helper()
			began := time.Now()
			if got := direct(s, map[string]string{mcp.HeaderSession: id}, pingBody).Code; got != 200 || time.Since(began) != want {
				t.Errorf("%d after %v, want 200 after %v", got, time.Since(began), want)
			}
		}
		ask(ids[0], loadWait)
		time.AfterFunc(time.Second, func() { close(loaded) })
		ask(ids[1], time.Second)
		ask(ids[1], 0)
	})
}

// recordingSession sends the given messages, and stores the answers that it receives.
type recordingSession struct {
	session.Session
	events  []session.Event
	answers []string
}

func (r *recordingSession) Do(_ context.Context, q *session.Request) (session.Reply, error) {
	for _, e := range r.events {
		q.Say(e)
	}
	return session.Reply{}, nil
}

func (r *recordingSession) AnswerServerQuestion(_ context.Context, id json.RawMessage, _ session.Reply) error {
	r.answers = append(r.answers, string(id))
	return nil
}

// TestAnswersOfBeforeAreDropped: a client that answers a question of before the restart does not answer another one with
// the same ID.
func TestAnswersOfBeforeAreDropped(t *testing.T) {
	server := &recordingSession{events: []session.Event{
		{Method: "elicitation/create", ID: json.RawMessage(`1`)},
		{Method: "elicitation/create", ID: json.RawMessage(`"a:b"`)},
		{Method: mcp.Cancelled, Params: json.RawMessage(`{"requestId":1,"reason":"late"}`)},
		{Method: "notifications/message", Params: json.RawMessage(`{"level":"info"}`)},
	}}
	s := &restoredSession{Session: server, mark: "MARK"}
	var said []string
	_, _ = s.Do(t.Context(), &session.Request{Say: func(e session.Event) { said = append(said, string(e.AppendMessage(nil))) }})
	want := []string{
		`{"jsonrpc":"2.0","id":"MARK:1","method":"elicitation/create"}`,
		`{"jsonrpc":"2.0","id":"MARK:\"a:b\"","method":"elicitation/create"}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"MARK:1","reason":"late"}}`,
		`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info"}}`,
	}
	if !slices.Equal(said, want) {
		t.Errorf("the client hears\n%s\nnot\n%s", strings.Join(said, "\n"), strings.Join(want, "\n"))
	}
	for _, id := range []string{`1`, `"a:b"`, `"OTHER:1"`, `"MARK:"`, `"MARK:{}"`, `"MARK:1"`, `"MARK:\"a:b\""`} {
		if err := s.AnswerServerQuestion(t.Context(), json.RawMessage(id), session.Reply{}); err != nil {
			t.Error(err)
		}
	}
	if !slices.Equal(server.answers, []string{`1`, `"a:b"`}) {
		t.Errorf("the server gets the answers %q", server.answers)
	}
}
