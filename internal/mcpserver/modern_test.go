package mcpserver

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"mcpproxy/internal/config"
	"mcpproxy/internal/gate"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/ops"
)

// versions are the revisions that are served, the newest first.
var versions = []string{"2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

func TestDiscover(t *testing.T) {
	h := newHarness(t)
	a := h.modern("server/discover", "").is(200)
	var r struct {
		ResultType        string   `json:"resultType"`
		SupportedVersions []string `json:"supportedVersions"`
		Capabilities      map[string]json.RawMessage
		Instructions      string
		TTLMs             *int                       `json:"ttlMs"`
		CacheScope        string                     `json:"cacheScope"`
		Meta              map[string]json.RawMessage `json:"_meta"`
	}
	if err := json.Unmarshal(a.rpc().Result, &r); err != nil {
		t.Fatal(err)
	}
	if r.ResultType != "complete" || !slices.Equal(r.SupportedVersions, versions) || len(r.Capabilities) != 1 ||
		string(r.Capabilities["tools"]) != `{"listChanged":true}` || r.Instructions == "" || r.TTLMs == nil || *r.TTLMs != 0 || r.CacheScope != "private" {
		t.Errorf("%s", a.body)
	}
	if got := string(r.Meta[mcp.MetaServerInfo]); got != `{"name":"mcpproxy","title":"MCPProxy","version":"1.2.3"}` {
		t.Errorf("serverInfo %s", got)
	}
	if a.header.Get(mcp.HeaderSession) != "" {
		t.Error("a session was minted")
	}
	if got := a.header.Get("Content-Type"); got != "application/json" {
		t.Errorf("Content-Type %q", got)
	}
}

// A modern request with a wrong or incomplete _meta is refused.
func TestModernMeta(t *testing.T) {
	h := newHarness(t)
	const caps = `"io.modelcontextprotocol/clientCapabilities":{}`
	version := func(v string) string { return `"io.modelcontextprotocol/protocolVersion":` + v }
	for name, tt := range map[string]struct {
		params, header string
		code           int
	}{
		"no params":              {"", mcp.Modern, wirejson.CodeInvalidParams},
		"no _meta":               {`{}`, mcp.Modern, wirejson.CodeInvalidParams},
		"null _meta":             {`{"_meta":null}`, mcp.Modern, wirejson.CodeInvalidParams},
		"_meta is a string":      {`{"_meta":"x"}`, mcp.Modern, wirejson.CodeInvalidParams},
		"params is an array":     {`[]`, mcp.Modern, wirejson.CodeInvalidParams},
		"empty _meta":            {`{"_meta":{}}`, mcp.Modern, wirejson.CodeInvalidParams},
		"no version":             {`{"_meta":{` + caps + `}}`, mcp.Modern, wirejson.CodeInvalidParams},
		"no capabilities":        {`{"_meta":{` + version(`"2026-07-28"`) + `}}`, mcp.Modern, wirejson.CodeInvalidParams},
		"null capabilities":      {`{"_meta":{` + version(`"2026-07-28"`) + `,"io.modelcontextprotocol/clientCapabilities":null}}`, mcp.Modern, wirejson.CodeInvalidParams},
		"capabilities a list":    {`{"_meta":{` + version(`"2026-07-28"`) + `,"io.modelcontextprotocol/clientCapabilities":[]}}`, mcp.Modern, wirejson.CodeInvalidParams},
		"version a number":       {`{"_meta":{` + version(`20260728`) + `,` + caps + `}}`, mcp.Modern, wirejson.CodeInvalidParams},
		"version null":           {`{"_meta":{` + version(`null`) + `,` + caps + `}}`, mcp.Modern, wirejson.CodeInvalidParams},
		"unknown version":        {`{"_meta":{` + version(`"v999.0.0"`) + `,` + caps + `}}`, "v999.0.0", mcp.CodeUnsupportedVersion},
		"a version with session": {`{"_meta":{` + version(`"2025-11-25"`) + `,` + caps + `}}`, "2025-11-25", mcp.CodeUnsupportedVersion},
		"unknown, header only":   {`{}`, "2030-01-01", mcp.CodeUnsupportedVersion},
		"header differs":         {`{"_meta":{` + version(`"2026-07-28"`) + `,` + caps + `}}`, "2025-11-25", mcp.CodeHeaderMismatch},
		"body differs":           {`{"_meta":{` + version(`"v999.0.0"`) + `,` + caps + `}}`, mcp.Modern, mcp.CodeHeaderMismatch},
		"no header":              {`{"_meta":{` + version(`"2026-07-28"`) + `,` + caps + `}}`, "-", mcp.CodeHeaderMismatch},
	} {
		t.Run(name, func(t *testing.T) {
			h.t = t
			body := `{"jsonrpc":"2.0","id":"a","method":"server/discover"`
			if tt.params != "" {
				body += `,"params":` + tt.params
			}
			m := h.post(map[string]string{mcp.HeaderVersion: tt.header, mcp.HeaderMethod: "server/discover"}, body+`}`).is(400).fails(tt.code)
			if string(m.ID) != `"a"` {
				t.Errorf("id %s", m.ID)
			}
			if tt.code != mcp.CodeUnsupportedVersion {
				return
			}
			var d struct {
				Supported []string
				Requested string
			}
			if err := json.Unmarshal(m.Error.Data, &d); err != nil || !slices.Equal(d.Supported, versions) || d.Requested != tt.header {
				t.Errorf("data %s", m.Error.Data)
			}
		})
	}
	// Optional members may be missing.
	h.t = t
	h.post(map[string]string{mcp.HeaderVersion: mcp.Modern, mcp.HeaderMethod: "server/discover"},
		`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{`+version(`"2026-07-28"`)+`,`+caps+`}}}`).is(200)
}

// Forty requests whose headers and body disagree are refused.
func TestHeaderMismatches(t *testing.T) {
	h := newHarness(t)
	session := h.open(mcp.Legacy)
	type headers = map[string]string
	encode := func(s string) string { return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(s)) + "?=" }
	call := `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"call_tool_read","arguments":{"name":"a:b"},` + modernMeta + `}}`
	list := `{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{` + modernMeta + `}}`
	read := `{"jsonrpc":"2.0","id":7,"method":"resources/read","params":{"uri":"file:///a",` + modernMeta + `}}`
	prompt := `{"jsonrpc":"2.0","id":7,"method":"prompts/get","params":{"name":"p",` + modernMeta + `}}`
	legacyCall := `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"call_tool_read","arguments":{"name":"a:b"}}}`
	v := mcp.Modern
	var cases []struct {
		body   string
		header headers
	}
	add := func(body string, header headers) {
		cases = append(cases, struct {
			body   string
			header headers
		}{body, header})
	}
	for _, name := range []string{"call_tool_write", "call_tool_destructive", "Call_tool_read", "CALL_TOOL_READ", "call_tool_read2", "call_tool_rea",
		"", "a:b", "call_tool_read, call_tool_write", encode("call_tool_write"), encode(""), "=?base64?????=", "=?base64?Y2FsbA=?=",
		"=?BASE64?Y2FsbF90b29sX3JlYWQ=?=", "=?base64?Y2FsbF90b29sX3JlYWQ", "call_tool_read\u00e9", "c\u0430ll_tool_read", "\"call_tool_read\"", encode("call_tool_read\x00"), "%63all_tool_read"} {
		add(call, headers{mcp.HeaderVersion: v, mcp.HeaderMethod: "tools/call", mcp.HeaderName: name})
	}
	add(call, headers{mcp.HeaderVersion: v, mcp.HeaderMethod: "tools/call"})
	for _, method := range []string{"tools/list", "Tools/Call", "TOOLS/CALL", "tools/call2", "", "ping", encode("tools/call")} {
		add(call, headers{mcp.HeaderVersion: v, mcp.HeaderMethod: method, mcp.HeaderName: "call_tool_read"})
	}
	add(call, headers{mcp.HeaderVersion: v, mcp.HeaderName: "call_tool_read"})
	for _, version := range []string{"2025-11-25", "2025-03-26", "v999", "", "2026-07-28, 2026-07-28"} {
		add(call, headers{mcp.HeaderVersion: version, mcp.HeaderMethod: "tools/call", mcp.HeaderName: "call_tool_read"})
	}
	add(call, headers{mcp.HeaderMethod: "tools/call", mcp.HeaderName: "call_tool_read"})
	add(list, headers{mcp.HeaderVersion: v, mcp.HeaderMethod: "tools/call"})
	add(read, headers{mcp.HeaderVersion: v, mcp.HeaderMethod: "resources/read", mcp.HeaderName: "file:///b"})
	add(read, headers{mcp.HeaderVersion: v, mcp.HeaderMethod: "resources/read"})
	add(prompt, headers{mcp.HeaderVersion: v, mcp.HeaderMethod: "prompts/get", mcp.HeaderName: "q"})
	task := `{"jsonrpc":"2.0","id":7,"method":"tasks/get","params":{"taskId":"t",` + modernMeta + `}}`
	add(task, headers{mcp.HeaderVersion: v, mcp.HeaderMethod: "tasks/get", mcp.HeaderName: "u"})
	// In a session the headers are not needed, but must not lie either.
	add(legacyCall, headers{mcp.HeaderSession: session, mcp.HeaderMethod: "tools/list"})
	add(legacyCall, headers{mcp.HeaderSession: session, mcp.HeaderMethod: "tools/call", mcp.HeaderName: "call_tool_write"})
	if len(cases) < 40 {
		t.Fatalf("%d cases", len(cases))
	}
	for _, c := range cases {
		a := h.post(c.header, c.body)
		if m := a.rpc(); a.status != 400 || m.Error == nil || m.Error.Code != mcp.CodeHeaderMismatch || string(m.ID) != "7" {
			t.Errorf("%v with %s: %d %s", c.header, c.body, a.status, a.body)
		}
	}
	if h.gw.count() != 0 {
		t.Error("a call came through")
	}
	t.Logf("%d mismatches, %d refused", len(cases), len(cases))
	// A header that agrees with the body passes, in any spelling.
	for _, name := range []string{"call_tool_read", encode("call_tool_read"), "  call_tool_read "} {
		h.post(headers{mcp.HeaderVersion: v, mcp.HeaderMethod: "tools/call", mcp.HeaderName: name}, call).is(200).tool()
	}
	h.post(headers{"mcp-protocol-version": v, "MCP-METHOD": "tools/call", "mcp-name": "call_tool_read"}, call).is(200).tool()
	h.post(headers{mcp.HeaderSession: session, mcp.HeaderMethod: "tools/call", mcp.HeaderName: "call_tool_read"}, legacyCall).is(200).tool()
}

// A request with a repeated header is refused.
func TestRepeatedHeaders(t *testing.T) {
	h := newHarness(t)
	session := h.open(mcp.Legacy)
	for _, name := range []string{mcp.HeaderVersion, mcp.HeaderMethod, mcp.HeaderName, mcp.HeaderSession} {
		req, _ := http.NewRequest("POST", h.http.URL, strings.NewReader(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"call_tool_read",`+modernMeta+`}}`))
		req.Header = http.Header{"Content-Type": typeJSON, mcp.HeaderVersion: {mcp.Modern}, mcp.HeaderMethod: {"tools/call"}, mcp.HeaderName: {"call_tool_read"}, mcp.HeaderSession: {session}}
		req.Header.Add(name, req.Header.Get(name))
		res, err := h.http.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != 400 {
			t.Errorf("two %s: %d", name, res.StatusCode)
		}
	}
}

func TestModernMethods(t *testing.T) {
	h := newHarness(t)
	for _, method := range []string{"initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "resources/list",
		"resources/templates/list", "prompts/list", "completion/complete", "tasks/get", "unknown/method", "Tools/list"} {
		if m := h.modern(method, "").is(404).fails(wirejson.CodeMethodNotFound); string(m.ID) != "7" {
			t.Errorf("%s: id %s", method, m.ID)
		}
	}
	// A session ID is ignored here, even an unknown one.
	a := h.modern("tools/list", "", mcp.HeaderSession, "nonsense", "Last-Event-Id", "1").is(200)
	if a.header.Get(mcp.HeaderSession) != "" {
		t.Error("the session id is echoed")
	}
	// Notifications are taken, responses are not.
	header := map[string]string{mcp.HeaderVersion: mcp.Modern}
	if a := h.post(header, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`).is(202); len(a.body) > 0 {
		t.Errorf("a body: %s", a.body)
	}
	h.post(header, `{"jsonrpc":"2.0","id":1,"result":{}}`).is(400).fails(wirejson.CodeInvalidRequest)
	h.post(header, `[{"jsonrpc":"2.0","id":1,"method":"tools/list"}]`).is(400).fails(wirejson.CodeInvalidRequest)
}

func TestModernErrorsOfCalls(t *testing.T) {
	h := newHarness(t)
	h.modern("tools/call", `"name":5`, mcp.HeaderName, "5").is(400).fails(wirejson.CodeInvalidParams)
	h.modern("tools/call", ``, mcp.HeaderName, "x").is(400).fails(wirejson.CodeInvalidParams)
	for _, args := range []string{`[]`, `"x"`, `1`, `true`} {
		h.callModern(callToolRead, args).is(400).fails(wirejson.CodeInvalidParams)
	}
	h.callModern("nonsense", `{}`).is(400).fails(wirejson.CodeInvalidParams)
	h.callModern(retrieveTools, `null`).tool() // a search without a query, which says what to try
	h.modern("tools/list", `"cursor":"x"`).is(400).fails(wirejson.CodeInvalidParams)
}

// A member that the modern protocol requires is added to an upstream's result where it is missing, and nothing else changes.
func TestModernResult(t *testing.T) {
	h := newHarness(t)
	const info = `"io.modelcontextprotocol/serverInfo":{"name":"mcpproxy","title":"MCPProxy","version":"1.2.3"}`
	for _, tt := range []struct{ raw, want string }{
		{`{"content":[]}`, `{"resultType":"complete","_meta":{` + info + `},"content":[]}`},
		{` { "content":[]} `, `{"resultType":"complete","_meta":{` + info + `},"content":[]} `},
		{`{"resultType":"complete","content":[]}`, `{"_meta":{` + info + `},"resultType":"complete","content":[]}`},
		{`{"a":9007199254740993,"resultType":"task","b":{"resultType":1}}`, `{"_meta":{` + info + `},"a":9007199254740993,"resultType":"task","b":{"resultType":1}}`},
		{`{"a":{"resultType":"x","_meta":{}},"content":[]}`, `{"resultType":"complete","_meta":{` + info + `},"a":{"resultType":"x","_meta":{}},"content":[]}`},
		{`{"_meta":{},"content":[]}`, `{"resultType":"complete","_meta":{` + info + `},"content":[]}`},
		{`{"content":[],"_meta":{"x":1.50}}`, `{"resultType":"complete","content":[],"_meta":{"x":1.50,` + info + `}}`},
		{`{"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"up"}},"content":[]}`, `{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"up"}},"content":[]}`},
		{"{\n  \"content\": []\n}", "{\"resultType\":\"complete\",\"_meta\":{" + info + "},\"content\": []\n}"},
	} {
		h.gw.call = func(_ ctxT, _ gate.LaneCall) (gate.CallResult, error) {
			return gate.CallResult{Result: json.RawMessage(tt.raw)}, nil
		}
		a := h.callModern(callToolRead, `{"name":"a:b"}`).is(200)
		if want := `{"jsonrpc":"2.0","id":7,"result":` + tt.want + `}`; string(a.body) != want {
			t.Errorf("%s\n got %s\nwant %s", tt.raw, a.body, want)
		}
		if !json.Valid(a.body) {
			t.Errorf("not JSON: %s", a.body)
		}
		session := h.open(mcp.Legacy)
		a = h.callLegacy(session, callToolRead, `{"name":"a:b"}`).is(200)
		if want := `{"jsonrpc":"2.0","id":7,"result":` + tt.raw + `}`; string(a.body) != want {
			t.Errorf("in a session:\n got %s\nwant %s", a.body, want)
		}
	}
}

// A result that strict clients reject is returned in the form that they accept.
func TestStrictResult(t *testing.T) {
	h := newHarness(t)
	h.gw.call = func(ctxT, gate.LaneCall) (gate.CallResult, error) {
		return gate.CallResult{Result: json.RawMessage(`{"content":[{"type":"text","text":"a","annotations":null}],"_meta":null}`)}, nil
	}
	const want = `{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"a"}]}}`
	if a := h.callLegacy(h.open(mcp.Legacy), callToolRead, `{"name":"a:b"}`).is(200); string(a.body) != want {
		t.Errorf("%s", a.body)
	}
	if r := h.callModern(callToolRead, `{"name":"a:b"}`).tool(); r.Meta[mcp.MetaServerInfo] == nil || len(r.Content) != 1 {
		t.Errorf("%+v", r)
	}
}

func TestLargeResult(t *testing.T) {
	h := newHarness(t)
	raw := `{"content":[{"type":"text","text":"` + strings.Repeat("0123456789", 1<<20) + `"}]}`
	h.gw.call = func(ctxT, gate.LaneCall) (gate.CallResult, error) {
		return gate.CallResult{Result: json.RawMessage(raw)}, nil
	}
	session := h.open(mcp.Legacy)
	if a := h.callLegacy(session, callToolRead, `{"name":"a:b"}`); !bytes.Contains(a.body, []byte(raw)) {
		t.Error("not whole")
	}
	if a := h.callModern(callToolRead, `{"name":"a:b"}`); !bytes.Contains(a.body, []byte(raw[1:])) {
		t.Error("not whole")
	}
}

func TestListen(t *testing.T) {
	h := newHarness(t)
	for _, id := range []string{`5`, `"five"`} {
		body := `{"jsonrpc":"2.0","id":` + id + `,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},` + modernMeta + `}}`
		st := h.openStream("POST", map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
			mcp.HeaderVersion: mcp.Modern, mcp.HeaderMethod: "subscriptions/listen"}, body)
		want := fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%s},"notifications":{"toolsListChanged":true}}}`, id)
		if got := st.next(); got != want {
			t.Errorf("got %s\nwant %s", got, want)
		}
		st.close()
	}
	h.modern("subscriptions/listen", `"notifications":5`).is(400).fails(wirejson.CodeInvalidParams)
}

// A client that does not subscribe to tools gets no notification about them.
func TestListenToNothing(t *testing.T) {
	h := newHarness(t)
	for _, wanted := range []string{`{}`, `{"toolsListChanged":false}`, `{"toolsListChanged":"true"}`, `{"promptsListChanged":true}`} {
		next, stop := h.events(http.MethodPost, "/mcp", "", `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":`+wanted+`,`+modernMeta+`}}`)
		if got := next(); !strings.HasSuffix(got, `"notifications":{}}}`) {
			t.Errorf("%s: %s", wanted, got)
		}
		stop()
	}
}

// usables are servers that change.
type usables struct {
	mu      sync.Mutex
	all     []ops.UsableServer
	changed chan struct{}
}

func (u *usables) now() ([]ops.UsableServer, <-chan struct{}) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.all, u.changed
}

func (u *usables) become(all ...ops.UsableServer) {
	u.mu.Lock()
	defer u.mu.Unlock()
	close(u.changed)
	u.all, u.changed = all, make(chan struct{})
}

// A client is notified of changed servers or built-in tools, in both protocols, even if they changed before it listened. The
// new instructions name the servers.
func TestServersChange(t *testing.T) {
	h := newHarness(t)
	u := &usables{changed: make(chan struct{})}
	h.gw.usable = u.now
	session := h.open("2025-06-18")
	u.become(ops.UsableServer{Name: "one", Listed: true, Tools: 3})
	next, stop := h.events(http.MethodGet, "/mcp", session, "")
	defer stop()
	const said = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"`
	if got := next(); got != said+`}` {
		t.Errorf("what changed before: %s", got)
	}
	nextModern, stopModern := h.events(http.MethodPost, "/mcp", "", `{"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},`+modernMeta+`}}`)
	defer stopModern()
	if got := nextModern(); !strings.Contains(got, "acknowledged") {
		t.Errorf("agreed: %s", got)
	}
	heard := func() {
		t.Helper()
		if got := next(); got != said+`}` {
			t.Errorf("legacy: %s", got)
		}
		if got := nextModern(); got != said+`,"params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"l"}}}` {
			t.Errorf("modern: %s", got)
		}
	}
	u.become(ops.UsableServer{Name: "one", Listed: true, Tools: 4})
	heard()
	for _, introduced := range []string{string(h.modern("server/discover", "").body),
		string(h.post(nil, `{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-06-18"}}`).body)} {
		if !strings.Contains(introduced, `The servers, with how many tools each has: one (4)."`) {
			t.Errorf("%s", introduced)
		}
	}
	cfg := *h.cfg.Load()
	cfg.MCPManagement = config.ManageOff
	h.cfg.Store(&cfg)
	u.become(ops.UsableServer{Name: "one", Listed: true, Tools: 4}) // but another tool is not there any more
	heard()
}

// The server ends a subscription with a result, which tells the client that it is not an error.
func TestListenEndsWithServer(t *testing.T) {
	h := newHarness(t)
	st := h.openStream("POST", map[string]string{"Content-Type": "application/json", mcp.HeaderVersion: mcp.Modern, mcp.HeaderMethod: "subscriptions/listen"},
		`{"jsonrpc":"2.0","id":5,"method":"subscriptions/listen","params":{`+modernMeta+`}}`)
	st.next()
	h.srv.Close()
	var m rpcAnswer
	if err := json.Unmarshal([]byte(st.next()), &m); err != nil || string(m.ID) != "5" ||
		!strings.Contains(string(m.Result), `"io.modelcontextprotocol/subscriptionId":5`) || !strings.Contains(string(m.Result), `"resultType":"complete"`) {
		t.Errorf("%v %+v", err, m)
	}
	if rest := st.next(); rest != "" {
		t.Errorf("more: %s", rest)
	}
}

func TestStreamsAreCounted(t *testing.T) {
	h := newHarness(t)
	h.srv.streams = make(chan struct{}, 1)
	header := map[string]string{"Content-Type": "application/json", mcp.HeaderVersion: mcp.Modern, mcp.HeaderMethod: "subscriptions/listen"}
	body := `{"jsonrpc":"2.0","id":5,"method":"subscriptions/listen","params":{` + modernMeta + `}}`
	st := h.openStream("POST", header, body)
	st.next()
	h.post(header, body).is(503).fails(wirejson.CodeInternal)
	st.close()
}
