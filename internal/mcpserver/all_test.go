package mcpserver

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"mcpproxy/internal/config"
	"mcpproxy/internal/gate"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/testutil/catalogtest"
	"mcpproxy/internal/testutil/gatetest"
	"mcpproxy/internal/testutil/mcptest"
	"mcpproxy/internal/upstream"
)

// everything is all servers at once, of which there is one, with a real gate.
type everything struct {
	*catalogtest.Harness
	*throughSet
	state upstream.State
}

// change has the server list other things: tools as such, or other prompts or
// resources.
func (e *everything) change(tools bool, capabilities string) {
	if tools {
		e.SetToolsOn("one", `{"name":"another"}`)
	}
	e.state.Capabilities = json.RawMessage(capabilities)
	e.Catalog.StateChanged(e.state)
	e.Catalog.Publish()
}

const twoKinds = `{"tools":{},"prompts":{"listChanged":true},"logging":{}}`

func allHarness(t *testing.T) (*harness, *everything, *mcptest.Server) {
	h, set, server := relayHarness(t)
	return h, serveAll(t, h, set), server
}

// serveAll puts the server one of a set behind /mcp/all.
func serveAll(t *testing.T, h *harness, set *throughSet) *everything {
	e := &everything{throughSet: set, state: upstream.State{Name: "one", Phase: upstream.Ready, Capabilities: json.RawMessage(twoKinds)},
		Harness: catalogtest.New(t, func(c *config.Config) {
			c.Servers = []config.Server{{Name: "one", Protocol: "http", Enabled: true, Trust: config.TrustAuto}}
		})}
	e.Upstreams.(*catalogtest.ScriptedServers).Primitives = map[string][]json.RawMessage{"one prompts/list": {json.RawMessage(`{"name":"a"}`), json.RawMessage(`{"name":"b"}`)}}
	var tools []string
	for _, name := range []string{"echo", "x", "call_tool_read", "retrieve_tools", "upstream_servers", "call_tool"} {
		tools = append(tools, `{"name":"`+name+`"}`)
	}
	e.SetToolsOn("one", tools...)
	e.Catalog.StateChanged(e.state)
	e.Catalog.Publish()
	deps := gatetest.NewDeps(e.Harness)
	deps.UpstreamSurface = set.At
	h.srv.All = gate.NewAggregateEndpoint(gate.AggregateDeps{Catalog: e.Catalog, Offers: deps.Offers, Reply: h.srv.Reply, Gate: gate.New(deps)})
	return e
}

const allHello = `{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{}},"clientInfo":{"name":"c","version":"1"}}}`

func (h *harness) allSession() string {
	h.t.Helper()
	status, body, header := h.to("/mcp/all", "", allHello)
	session := header.Get("Mcp-Session-Id")
	if status != http.StatusOK || session == "" ||
		!strings.Contains(body, `"capabilities":{"tools":{"listChanged":true},"prompts":{"listChanged":true},"logging":{},"extensions":{"io.modelcontextprotocol/ui":{}}},"serverInfo":{"name":"mcpproxy"`) ||
		!strings.Contains(body, `"instructions":"The tools, prompts`) {
		h.t.Fatalf("%d %s", status, body)
	}
	return session
}

func TestAllSession(t *testing.T) {
	h, _, server := allHarness(t)
	session := h.allSession()
	for _, c := range []struct{ method, params, want string }{
		{"ping", `{}`, `"result":{}`},
		{"tools/list", `{}`, `"result":{"tools":[{"name":"one__call_tool","inputSchema":{"type":"object"}},{"name":"one__call_tool_read","inputSchema":{"type":"object"}},`},
		{"resources/templates/list", `{"cursor":"c"}`, `"code":-32602`},
		{"prompts/list", `{"cursor":7}`, `"code":-32602`},
		{"resources/subscribe", `{"uri":"x"}`, `"code":-32601`},
		{"subscriptions/listen", `{}`, `"code":-32601`},
		{"logging/setLevel", `{"level":"loud"}`, `"code":-32602`},
		{"logging/setLevel", `{"level":"info"}`, `"result":{}`},
		{"tools/call", `{"name":"one__echo","arguments":{"n":9007199254740993}}`, `9007199254740993`},
		{"logging/setLevel", `{"level":"error"}`, `"result":{}`},
	} {
		status, body, _ := h.to("/mcp/all", session, `{"jsonrpc":"2.0","id":2,"method":"`+c.method+`","params":`+c.params+`}`)
		if status != http.StatusOK || !strings.Contains(body, c.want) {
			t.Errorf("%s %s: %d %s", c.method, c.params, status, body)
		}
	}
	levels := ""
	for _, m := range server.Received("logging/setLevel") {
		levels += string(m.Params)
	}
	if levels != `{"level":"info"}{"level":"error"}` {
		t.Errorf("the server was told %s", levels)
	}
	introduced := false
	for _, m := range server.Received("initialize") {
		introduced = introduced || strings.Contains(string(m.Params), `"capabilities":{"roots":{}},"clientInfo":{"name":"c"`)
	}
	if !introduced {
		t.Error("the client was not introduced")
	}
	for path, want := range map[string]int{"/mcp/all": 200, "/mcp/all/mcp": 200, "/mcp": 404, "/mcp/servers/one": 404, "/mcp/servers/*": 404} {
		if status, body, _ := h.to(path, session, `{"jsonrpc":"2.0","id":2,"method":"ping"}`); status != want {
			t.Errorf("%s: %d %s, want %d", path, status, body, want)
		}
	}
	for _, notice := range []string{
		`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`, `{"jsonrpc":"2.0","id":"nobody:7","result":{}}`, `{"jsonrpc":"2.0","id":7,"result":{}}`,
	} {
		if status, body, _ := h.to("/mcp/all", session, notice); status != http.StatusAccepted {
			t.Errorf("%s: %d %s", notice, status, body)
		}
	}
	if len(server.Received("notifications/roots/list_changed")) != 1 {
		t.Error("the server was not told of the roots")
	}
	big := strings.Replace(allHello, `"roots":{}`, `"x":"`+strings.Repeat("x", 64<<10)+`"`, 1)
	if _, body, header := h.to("/mcp/all", "", big); header.Get("Mcp-Session-Id") != "" || !strings.Contains(body, "65536 bytes") {
		t.Errorf("%s", body)
	}
}

// The sessions with servers end with the client's session, and an ended one is replaced.
func TestAllSessionsEnd(t *testing.T) {
	h, _, server := allHarness(t)
	session := h.allSession()
	const call = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"one__echo","arguments":{}}}`
	sessions := func() (n int) { // of this client
		for _, m := range server.Received("initialize") {
			if strings.Contains(string(m.Params), `"name":"c"`) {
				n++
			}
		}
		return n
	}
	h.to("/mcp/all", session, call)
	one := sessions()
	if _, body, _ := h.to("/mcp/all", session, call); sessions() != one || !strings.Contains(body, `"result"`) {
		t.Errorf("%d sessions, then %d: %s", one, sessions(), body)
	}
	server.DropSessions()
	h.to("/mcp/all", session, call) // it notices
	if status, body, _ := h.to("/mcp/all", session, call); status != http.StatusOK || !strings.Contains(body, `"result"`) {
		t.Errorf("%d %s", status, body)
	}
	if sessions() != one+1 {
		t.Errorf("%d sessions: the one that has ended was not replaced", sessions())
	}
	found := h.srv.sessions.acquireSession(session, h.srv.sessions.byID[session].actor, atAll)
	found.releaseUse(false)
	h.srv.sessions.endSession(found)
	<-found.session.Done()
	if status, _, _ := h.to("/mcp/all", session, call); status != http.StatusNotFound {
		t.Errorf("after the end: %d", status)
	}
}

// TestAnswerToADisconnectedServer: the end of one server's session does not end the client's.
func TestAnswerToADisconnectedServer(t *testing.T) {
	h, _, server := allHarness(t)
	session := h.allSession()
	h.to("/mcp/all", session, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"one__echo","arguments":{}}}`)
	server.DropSessions()
	if status, body, _ := h.to("/mcp/all", session, `{"jsonrpc":"2.0","id":"one:7","result":{}}`); status != http.StatusAccepted {
		t.Errorf("the answer: %d %s", status, body)
	}
	if status, body, _ := h.to("/mcp/all", session, `{"jsonrpc":"2.0","id":3,"method":"ping"}`); status != http.StatusOK {
		t.Errorf("afterwards: %d %s", status, body)
	}
}

// events reads the messages of a stream.
func (h *harness) events(method, path, session, body string) (next func() string, stop func()) {
	h.t.Helper()
	ctx, cancel := context.WithCancel(h.t.Context())
	req, err := http.NewRequestWithContext(ctx, method, h.http.URL+path, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	if session != "" {
		req.Header.Set("Mcp-Session-Id", session)
	} else {
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Mcp-Protocol-Version", mcp.Modern)
		req.Header.Set("Mcp-Method", "subscriptions/listen")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	lines := bufio.NewScanner(resp.Body)
	return func() string {
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				return data
			}
		}
		return "the end"
	}, func() { cancel(); resp.Body.Close() }
}

// A session is notified of changes since it last read, also of changes before its stream was open, and never of lists
// that it has not read.
func TestAllReportsMissedChanges(t *testing.T) {
	h, all, _ := allHarness(t)
	session := h.allSession()
	h.to("/mcp/all", session, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
	all.change(true, `{"tools":{}}`)
	next, stop := h.events(http.MethodGet, "/mcp/all", session, "")
	if got := next(); got != `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}` {
		t.Errorf("what changed before: %s", got)
	}
	all.change(false, `{"tools":{},"resources":{}}`)
	if got := next(); got != `{"jsonrpc":"2.0","method":"notifications/resources/list_changed"}` {
		t.Errorf("a change: %s", got)
	}
	stop()
}

func TestAllListen(t *testing.T) {
	h, all, _ := allHarness(t)
	const listen = `{"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":{"notifications":{"promptsListChanged":true,"toolsListChanged":false,"x":1},` +
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	next, stop := h.events(http.MethodPost, "/mcp/all", "", listen)
	defer stop()
	const meta = `"params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"l"}`
	if got := next(); got != `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged",`+meta+`,"notifications":{"promptsListChanged":true}}}` {
		t.Errorf("agreed: %s", got)
	}
	all.change(true, `{"tools":{}}`)
	if got := next(); got != `{"jsonrpc":"2.0","method":"notifications/prompts/list_changed",`+meta+`}}` {
		t.Errorf("a change: %s", got)
	}
	h.srv.Close()
	if got := next(); !strings.Contains(got, `"id":"l","result":{"resultType":"complete"`) {
		t.Errorf("the end: %s", got)
	}
}

func TestAllModern(t *testing.T) {
	h, _, _ := allHarness(t)
	ask := func(method, params string) string {
		t.Helper()
		params = strings.TrimSuffix(params, "}")
		if params != "{" {
			params += ","
		}
		body := `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":` + params +
			`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.http.URL+"/mcp/all", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
			"Mcp-Protocol-Version": mcp.Modern, "Mcp-Method": method} {
			req.Header.Set(name, value)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var b strings.Builder
		fmt.Fprint(&b, resp.StatusCode, " ")
		if _, err := bufio.NewReader(resp.Body).WriteTo(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	for _, c := range []struct{ method, params, want string }{
		{"server/discover", `{}`, `200 {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"mcpproxy"`},
		{"prompts/list", `{}`, `"prompts":[{"name":"one__a"},{"name":"one__b"}],"ttlMs":0,"cacheScope":"private"}`},
		{"ping", `{}`, `404 {"jsonrpc":"2.0","id":1,"error":{"code":-32601`},
		{"initialize", `{}`, `404 {"jsonrpc":"2.0","id":1,"error":{"code":-32601`},
		{"logging/setLevel", `{}`, `404 {"jsonrpc":"2.0","id":1,"error":{"code":-32601`},
		{"tools/list", `{"cursor":{}}`, `400 {"jsonrpc":"2.0","id":1,"error":{"code":-32602`},
	} {
		if got := ask(c.method, c.params); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s", c.method, got)
		}
	}
}

// A batch, which only one protocol version has, may contain requests for several servers.
func TestAllBatch(t *testing.T) {
	h, _, _ := allHarness(t)
	_, _, header := h.to("/mcp/all", "", strings.Replace(allHello, mcp.Legacy, mcp.BatchVersion, 1))
	status, body, _ := h.to("/mcp/all", header.Get("Mcp-Session-Id"), `[{"jsonrpc":"2.0","id":1,"method":"tools/list"},`+
		`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"},`+
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"one__echo","arguments":{"n":7}}},`+
		`{"jsonrpc":"2.0","id":3,"method":"initialize","params":{}},{"jsonrpc":"2.0","id":4,"method":"nope"}]`)
	var answers []struct {
		ID     int
		Result json.RawMessage
		Error  *struct{ Code int }
	}
	if err := json.Unmarshal([]byte(body), &answers); err != nil || status != http.StatusOK || len(answers) != 4 {
		t.Fatalf("%d %s %v", status, body, err)
	}
	if answers[0].Result == nil || !strings.Contains(string(answers[1].Result), "7") || answers[2].Error == nil || answers[3].Error.Code != -32601 {
		t.Errorf("%s", body)
	}
}
