package mcpserver

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"mcpproxy/internal/gateway"
	"mcpproxy/internal/jsonrpc"
)

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
	if r.ResultType != "complete" || !slices.Equal(r.SupportedVersions, versions[:]) || len(r.Capabilities) != 1 ||
		string(r.Capabilities["tools"]) != "{}" || r.Instructions == "" || r.TTLMs == nil || *r.TTLMs < 0 || r.CacheScope != "public" {
		t.Errorf("%s", a.body)
	}
	if got := string(r.Meta[metaServerInfo]); got != `{"name":"mcpproxy","title":"MCPProxy","version":"1.2.3"}` {
		t.Errorf("serverInfo %s", got)
	}
	if a.header.Get(headerSession) != "" {
		t.Error("a session was minted")
	}
	if got := a.header.Get("Content-Type"); got != "application/json" {
		t.Errorf("Content-Type %q", got)
	}
}

// A modern request that says something wrong, or not enough, about itself.
func TestModernMeta(t *testing.T) {
	h := newHarness(t)
	const caps = `"io.modelcontextprotocol/clientCapabilities":{}`
	version := func(v string) string { return `"io.modelcontextprotocol/protocolVersion":` + v }
	for name, tt := range map[string]struct {
		params, header string
		code           int
	}{
		"no params":              {"", modernVersion, jsonrpc.CodeInvalidParams},
		"no _meta":               {`{}`, modernVersion, jsonrpc.CodeInvalidParams},
		"null _meta":             {`{"_meta":null}`, modernVersion, jsonrpc.CodeInvalidParams},
		"_meta is a string":      {`{"_meta":"x"}`, modernVersion, jsonrpc.CodeInvalidParams},
		"params is an array":     {`[]`, modernVersion, jsonrpc.CodeInvalidParams},
		"empty _meta":            {`{"_meta":{}}`, modernVersion, jsonrpc.CodeInvalidParams},
		"no version":             {`{"_meta":{` + caps + `}}`, modernVersion, jsonrpc.CodeInvalidParams},
		"no capabilities":        {`{"_meta":{` + version(`"2026-07-28"`) + `}}`, modernVersion, jsonrpc.CodeInvalidParams},
		"null capabilities":      {`{"_meta":{` + version(`"2026-07-28"`) + `,"io.modelcontextprotocol/clientCapabilities":null}}`, modernVersion, jsonrpc.CodeInvalidParams},
		"capabilities a list":    {`{"_meta":{` + version(`"2026-07-28"`) + `,"io.modelcontextprotocol/clientCapabilities":[]}}`, modernVersion, jsonrpc.CodeInvalidParams},
		"version a number":       {`{"_meta":{` + version(`20260728`) + `,` + caps + `}}`, modernVersion, jsonrpc.CodeInvalidParams},
		"version null":           {`{"_meta":{` + version(`null`) + `,` + caps + `}}`, modernVersion, jsonrpc.CodeInvalidParams},
		"unknown version":        {`{"_meta":{` + version(`"v999.0.0"`) + `,` + caps + `}}`, "v999.0.0", jsonrpc.CodeUnsupportedVersion},
		"a version with session": {`{"_meta":{` + version(`"2025-11-25"`) + `,` + caps + `}}`, "2025-11-25", jsonrpc.CodeUnsupportedVersion},
		"unknown, header only":   {`{}`, "2030-01-01", jsonrpc.CodeUnsupportedVersion},
		"header differs":         {`{"_meta":{` + version(`"2026-07-28"`) + `,` + caps + `}}`, "2025-11-25", jsonrpc.CodeHeaderMismatch},
		"body differs":           {`{"_meta":{` + version(`"v999.0.0"`) + `,` + caps + `}}`, modernVersion, jsonrpc.CodeHeaderMismatch},
		"no header":              {`{"_meta":{` + version(`"2026-07-28"`) + `,` + caps + `}}`, "-", jsonrpc.CodeHeaderMismatch},
	} {
		t.Run(name, func(t *testing.T) {
			h.t = t
			body := `{"jsonrpc":"2.0","id":"a","method":"server/discover"`
			if tt.params != "" {
				body += `,"params":` + tt.params
			}
			m := h.post(map[string]string{headerVersion: tt.header, headerMethod: "server/discover"}, body+`}`).is(400).fails(tt.code)
			if string(m.ID) != `"a"` {
				t.Errorf("id %s", m.ID)
			}
			if tt.code != jsonrpc.CodeUnsupportedVersion {
				return
			}
			var d struct {
				Supported []string
				Requested string
			}
			if err := json.Unmarshal(m.Error.Data, &d); err != nil || !slices.Equal(d.Supported, versions[:]) || d.Requested != tt.header {
				t.Errorf("data %s", m.Error.Data)
			}
		})
	}
	// What is optional is.
	h.t = t
	h.post(map[string]string{headerVersion: modernVersion, headerMethod: "server/discover"},
		`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{`+version(`"2026-07-28"`)+`,`+caps+`}}}`).is(200)
}

// Forty requests whose headers and body tell different stories.
func TestHeaderMismatches(t *testing.T) {
	h := newHarness(t)
	session := h.open(latestLegacy)
	type headers = map[string]string
	encode := func(s string) string { return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(s)) + "?=" }
	call := `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"call_tool_read","arguments":{"name":"a:b"},` + modernMeta + `}}`
	list := `{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{` + modernMeta + `}}`
	read := `{"jsonrpc":"2.0","id":7,"method":"resources/read","params":{"uri":"file:///a",` + modernMeta + `}}`
	prompt := `{"jsonrpc":"2.0","id":7,"method":"prompts/get","params":{"name":"p",` + modernMeta + `}}`
	legacyCall := `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"call_tool_read","arguments":{"name":"a:b"}}}`
	v := modernVersion
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
		add(call, headers{headerVersion: v, headerMethod: "tools/call", headerName: name})
	}
	add(call, headers{headerVersion: v, headerMethod: "tools/call"})
	for _, method := range []string{"tools/list", "Tools/Call", "TOOLS/CALL", "tools/call2", "", "ping", encode("tools/call")} {
		add(call, headers{headerVersion: v, headerMethod: method, headerName: "call_tool_read"})
	}
	add(call, headers{headerVersion: v, headerName: "call_tool_read"})
	for _, version := range []string{"2025-11-25", "2025-03-26", "v999", "", "2026-07-28, 2026-07-28"} {
		add(call, headers{headerVersion: version, headerMethod: "tools/call", headerName: "call_tool_read"})
	}
	add(call, headers{headerMethod: "tools/call", headerName: "call_tool_read"})
	add(list, headers{headerVersion: v, headerMethod: "tools/call"})
	add(read, headers{headerVersion: v, headerMethod: "resources/read", headerName: "file:///b"})
	add(read, headers{headerVersion: v, headerMethod: "resources/read"})
	add(prompt, headers{headerVersion: v, headerMethod: "prompts/get", headerName: "q"})
	task := `{"jsonrpc":"2.0","id":7,"method":"tasks/get","params":{"taskId":"t",` + modernMeta + `}}`
	add(task, headers{headerVersion: v, headerMethod: "tasks/get", headerName: "u"})
	// In a session the headers are not needed, but must not lie either.
	add(legacyCall, headers{headerSession: session, headerMethod: "tools/list"})
	add(legacyCall, headers{headerSession: session, headerMethod: "tools/call", headerName: "call_tool_write"})
	if len(cases) < 40 {
		t.Fatalf("%d cases", len(cases))
	}
	for _, c := range cases {
		a := h.post(c.header, c.body)
		if m := a.rpc(); a.status != 400 || m.Error == nil || m.Error.Code != jsonrpc.CodeHeaderMismatch || string(m.ID) != "7" {
			t.Errorf("%v with %s: %d %s", c.header, c.body, a.status, a.body)
		}
	}
	if h.gw.count() != 0 {
		t.Error("a call came through")
	}
	t.Logf("%d mismatches, %d refused", len(cases), len(cases))
	// What agrees passes, whatever its spelling.
	for _, name := range []string{"call_tool_read", encode("call_tool_read"), "  call_tool_read "} {
		h.post(headers{headerVersion: v, headerMethod: "tools/call", headerName: name}, call).is(200).tool()
	}
	h.post(headers{"mcp-protocol-version": v, "MCP-METHOD": "tools/call", "mcp-name": "call_tool_read"}, call).is(200).tool()
	h.post(headers{headerSession: session, headerMethod: "tools/call", headerName: "call_tool_read"}, legacyCall).is(200).tool()
}

// Two headers of one name are two stories.
func TestRepeatedHeaders(t *testing.T) {
	h := newHarness(t)
	session := h.open(latestLegacy)
	for _, name := range []string{headerVersion, headerMethod, headerName, headerSession} {
		req, _ := http.NewRequest("POST", h.http.URL, strings.NewReader(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"call_tool_read",`+modernMeta+`}}`))
		req.Header = http.Header{"Content-Type": typeJSON, headerVersion: {modernVersion}, headerMethod: {"tools/call"}, headerName: {"call_tool_read"}, headerSession: {session}}
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
		if m := h.modern(method, "").is(404).fails(jsonrpc.CodeMethodNotFound); string(m.ID) != "7" {
			t.Errorf("%s: id %s", method, m.ID)
		}
	}
	// A session means nothing here, not even one that does not exist.
	a := h.modern("tools/list", "", headerSession, "nonsense", "Last-Event-Id", "1").is(200)
	if a.header.Get(headerSession) != "" {
		t.Error("the session id is echoed")
	}
	// Notifications are taken, responses are not.
	header := map[string]string{headerVersion: modernVersion}
	if a := h.post(header, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`).is(202); len(a.body) > 0 {
		t.Errorf("a body: %s", a.body)
	}
	h.post(header, `{"jsonrpc":"2.0","id":1,"result":{}}`).is(400).fails(jsonrpc.CodeInvalidRequest)
	h.post(header, `[{"jsonrpc":"2.0","id":1,"method":"tools/list"}]`).is(400).fails(jsonrpc.CodeInvalidRequest)
}

func TestModernErrorsOfCalls(t *testing.T) {
	h := newHarness(t)
	h.modern("tools/call", `"name":5`, headerName, "5").is(400).fails(jsonrpc.CodeInvalidParams)
	h.modern("tools/call", ``, headerName, "x").is(400).fails(jsonrpc.CodeInvalidParams)
	for _, args := range []string{`[]`, `"x"`, `1`, `true`} {
		h.callModern(callToolRead, args).is(400).fails(jsonrpc.CodeInvalidParams)
	}
	h.callModern("nonsense", `{}`).is(400).fails(jsonrpc.CodeInvalidParams)
	h.callModern(retrieveTools, `null`).refused("INVALID_PARAMETER")
	h.modern("tools/list", `"cursor":"x"`).is(400).fails(jsonrpc.CodeInvalidParams)
}

// What the modern era demands is added to an upstream's result where it is
// missing, and nothing else is touched.
func TestModernResult(t *testing.T) {
	h := newHarness(t)
	const info = `"io.modelcontextprotocol/serverInfo":{"name":"mcpproxy","title":"MCPProxy","version":"1.2.3"}`
	for _, tt := range []struct{ raw, want string }{
		{`{"content":[]}`, `{"resultType":"complete","_meta":{` + info + `},"content":[]}`},
		{`{}`, `{"resultType":"complete","_meta":{` + info + `}}`},
		{` { } `, `{"resultType":"complete","_meta":{` + info + `}} `},
		{`{"resultType":"complete"}`, `{"_meta":{` + info + `},"resultType":"complete"}`},
		{`{"a":9007199254740993,"resultType":"task","b":{"resultType":1}}`, `{"_meta":{` + info + `},"a":9007199254740993,"resultType":"task","b":{"resultType":1}}`},
		{`{"a":{"resultType":"x","_meta":{}}}`, `{"resultType":"complete","_meta":{` + info + `},"a":{"resultType":"x","_meta":{}}}`},
		{`{"_meta":{},"content":[]}`, `{"resultType":"complete","_meta":{` + info + `},"content":[]}`},
		{`{"content":[],"_meta":{"x":1.50}}`, `{"resultType":"complete","content":[],"_meta":{"x":1.50,` + info + `}}`},
		{`{"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"up"}}}`, `{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"up"}}}`},
		{`{"_meta":null}`, `{"resultType":"complete","_meta":null}`},
		{"{\n  \"content\": []\n}", "{\"resultType\":\"complete\",\"_meta\":{" + info + "},\"content\": []\n}"},
	} {
		h.gw.call = func(_ ctxT, _ gateway.CallRequest) (gateway.CallResult, error) {
			return gateway.CallResult{Result: json.RawMessage(tt.raw)}, nil
		}
		a := h.callModern(callToolRead, `{"name":"a:b"}`).is(200)
		if want := `{"jsonrpc":"2.0","id":7,"result":` + tt.want + `}`; string(a.body) != want {
			t.Errorf("%s\n got %s\nwant %s", tt.raw, a.body, want)
		}
		if !json.Valid(a.body) {
			t.Errorf("not JSON: %s", a.body)
		}
		session := h.open(latestLegacy)
		a = h.callLegacy(session, callToolRead, `{"name":"a:b"}`).is(200)
		if want := `{"jsonrpc":"2.0","id":7,"result":` + tt.raw + `}`; string(a.body) != want {
			t.Errorf("in a session:\n got %s\nwant %s", a.body, want)
		}
	}
}

func TestLargeResult(t *testing.T) {
	h := newHarness(t)
	raw := `{"content":[{"type":"text","text":"` + strings.Repeat("0123456789", 1<<20) + `"}]}`
	h.gw.call = func(ctxT, gateway.CallRequest) (gateway.CallResult, error) {
		return gateway.CallResult{Result: json.RawMessage(raw)}, nil
	}
	session := h.open(latestLegacy)
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
			headerVersion: modernVersion, headerMethod: "subscriptions/listen"}, body)
		want := fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%s},"notifications":{}}}`, id)
		if got := st.next(); got != want {
			t.Errorf("got %s\nwant %s", got, want)
		}
		st.close()
	}
	h.modern("subscriptions/listen", `"notifications":5`).is(400).fails(jsonrpc.CodeInvalidParams)
}

// The server ends a subscription with a result, so that its client knows that
// nothing broke.
func TestListenEndsWithServer(t *testing.T) {
	h := newHarness(t)
	st := h.openStream("POST", map[string]string{"Content-Type": "application/json", headerVersion: modernVersion, headerMethod: "subscriptions/listen"},
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
	h.srv.streams.max = 1
	header := map[string]string{"Content-Type": "application/json", headerVersion: modernVersion, headerMethod: "subscriptions/listen"}
	body := `{"jsonrpc":"2.0","id":5,"method":"subscriptions/listen","params":{` + modernMeta + `}}`
	st := h.openStream("POST", header, body)
	st.next()
	h.post(header, body).is(503).fails(jsonrpc.CodeInternal)
	st.close()
}
