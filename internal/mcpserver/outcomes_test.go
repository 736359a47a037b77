package mcpserver

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"mcpproxy/internal/gate"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/testutil/mcptest"
	"mcpproxy/internal/upstream"
)

// TestOutcomes: the outcome of a request, on each endpoint, in both protocols and each accepted form of response, equals the
// stored one byte by byte.
func TestOutcomes(t *testing.T) {
	var out strings.Builder
	for _, version := range []string{mcp.Modern, mcp.Legacy} {
		h, all, _ := allHarness(t)
		address := mcptest.Serve(t, saying(version)).URL
		all.ApplySpecs([]upstream.Spec{{Name: "one", Transport: upstream.HTTP, URL: address}})
		for _, path := range []string{"/mcp", "/mcp/all", "/mcp/servers/one", "/mcp/s/none"} {
			o := &outcomes{h: h, all: all, out: &out, version: version, path: path}
			o.open()
			o.messages()
			o.problems()
			o.batches()
		}
	}
	golden(t, "outcomes.txt", []byte(out.String()))
}

type outcomes struct {
	h             *harness
	all           *everything
	out           *strings.Builder
	version, path string
	session       string
}

const modernOnly = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

func (o *outcomes) open() {
	if o.version == mcp.Modern {
		return
	}
	o.send("initialize", "json", "POST", strings.Replace(relayHello, "2025-03-26", mcp.BatchVersion, 1), nil)
	if o.session == "" {
		o.session = "none"
	}
}

// request sends a request with these params, without their braces, as clients
// that take different forms of an answer.
func (o *outcomes) request(what, method, params string) {
	header := map[string]string{}
	if o.version == mcp.Modern {
		header[mcp.HeaderVersion], header[mcp.HeaderMethod] = mcp.Modern, method
		var p struct{ Name string }
		_ = json.Unmarshal([]byte("{"+params+"}"), &p)
		if p.Name != "" {
			header[mcp.HeaderName] = p.Name
		}
		params = strings.TrimPrefix(params+","+modernOnly, ",")
	}
	body := `{"jsonrpc":"2.0","id":"i","method":"` + method + `","params":{` + params + `}}`
	o.write(what, o.answer("both", "POST", body, header), o.answer("json", "POST", body, header), o.answer("events", "POST", body, header))
}

func (o *outcomes) send(what, accept, httpMethod, body string, header map[string]string) {
	o.write(what, o.answer(accept, httpMethod, body, header))
}

// write writes answers; identical ones once.
func (o *outcomes) write(what string, answers ...string) {
	fmt.Fprintf(o.out, "%s %s %s\n", o.path, o.version, what)
	for _, answer := range slices.Compact(answers) {
		fmt.Fprintf(o.out, "\t%s\n", answer)
	}
}

var acceptHeaders = map[string]string{"both": "application/json, text/event-stream", "json": "application/json", "events": "text/event-stream"}

func (o *outcomes) answer(accept, httpMethod, body string, header map[string]string) string {
	t := o.h.t
	t.Helper()
	if o.path == "/mcp/all" { // where a name says whose it is
		body = strings.ReplaceAll(body, `"params":{"name":"`, `"params":{"name":"one__`)
		if name := header[mcp.HeaderName]; name != "" {
			header = maps.Clone(header)
			header[mcp.HeaderName] = "one__" + name
		}
	}
	req, err := http.NewRequestWithContext(t.Context(), httpMethod, o.h.http.URL+o.path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", acceptHeaders[accept])
	if o.session != "" {
		req.Header.Set(mcp.HeaderSession, o.session)
	}
	for name, value := range header {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if id := resp.Header.Get(mcp.HeaderSession); id != "" {
		o.session = id
		resp.Header.Set(mcp.HeaderSession, "(an id)")
	}
	head := strconv.Itoa(resp.StatusCode)
	for _, name := range slices.Sorted(maps.Keys(resp.Header)) {
		if values := strings.Join(resp.Header[name], ", "); !slices.Contains(usual, name+": "+values) && name != "Date" && name != "Content-Length" {
			head += fmt.Sprintf(" %s: %s;", name, values)
		}
	}
	if sum := sha256.Sum256(got); len(got) > 160 {
		got = fmt.Appendf(got[:120:120], "... %d bytes, %x", len(got), sum[:6])
	}
	return head + " " + strings.ReplaceAll(string(got), "\n", "|")
}

// usual are headers that are left out.
var usual = []string{"Content-Type: application/json", "X-Accel-Buffering: no", "Cache-Control: no-cache", "Content-Type: text/event-stream"}

// messages sends what a client may say.
func (o *outcomes) messages() {
	for _, m := range [][2]string{
		{"ping", ""}, {"initialize", ""}, {"server/discover", ""}, {"tools/list", ""}, {"tools/list", `"cursor":7`}, {"prompts/list", ""},
		{"resources/subscribe", `"uri":"a:b"`}, {"logging/setLevel", `"level":"info"`}, {"logging/setLevel", `"level":"loud"`}, {"no/such", ""},
		{"tasks/get", `"taskId":"t"`}, {"tasks/result", `"taskId":"t"`},
		{"prompts/get", `"name":"x","how":"json"`}, {"prompts/get", `"name":"x","how":"events"`}, {"prompts/get", `"name":"x","how":"rpc 400"`},
		{"prompts/get", `"name":"x","how":"rpc 404"`}, {"prompts/get", `"name":"x","how":"rpc 503"`}, {"prompts/get", `"name":"x","how":"bare 401"`},
		{"prompts/get", `"name":"x","how":"bare 403"`}, {"prompts/get", `"name":"x","how":"bare 404"`}, {"prompts/get", `"name":"x","how":"bare 429"`},
		{"tools/call", `"name":"x","how":"json"`}, {"tools/call", `"name":"x","how":"events"`}, {"tools/call", `"name":"x","how":"rpc 400"`},
		{"tools/call", `"name":"x","how":"rpc 404"`}, {"tools/call", `"name":"x","how":"bare 401"`}, {"tools/call", `"name":"x","how":"bare 404"`},
		{"tools/call", `"name":"x","how":"bare 503"`}, {"tools/call", `"name":7`}, {"tools/call", ``},
		{"tools/call", `"name":"call_tool_read","arguments":{"name":"a:b"}`}, {"tools/call", `"name":"call_tool_read","arguments":[]`},
		{"tools/call", `"name":"retrieve_tools","arguments":{"query":"q"}`}, {"tools/call", `"name":"retrieve_tools","arguments":{}`},
		{"tools/call", `"name":"upstream_servers","arguments":{"operation":"list"}`}, {"tools/call", `"name":"call_tool"`},
	} {
		if o.version == mcp.Legacy && m[0] == "initialize" {
			continue // opens another session
		}
		o.request(m[0]+" "+m[1], m[0], m[1])
	}
	if o.version == mcp.Modern && o.path != "/mcp/servers/one" {
		o.request("a subscription", mcp.Listen, `"notifications":5`)
	}
	header := map[string]string{}
	if o.version == mcp.Modern {
		header[mcp.HeaderVersion] = mcp.Modern
	}
	for _, m := range []string{
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}`,
		`{"jsonrpc":"2.0","method":"tools/call","params":{"name":"x"}}`, `{"jsonrpc":"2.0","method":"vendor/notice","params":{"how":"too much"}}`,
		`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`, `{"jsonrpc":"2.0","id":"one:7","result":{}}`, `{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"m"}}`,
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":[]}`, `{"jsonrpc":"2.0","id":7`, `[]`,
	} {
		o.send(m, "both", "POST", m, header)
	}
	o.send("GET", "json", "GET", "", nil)
	o.send("PUT", "json", "PUT", "", nil)
}

// problems has what could be asked answer with each kind of problem.
func (o *outcomes) problems() {
	gone := problem.New(problem.UpstreamError, "The session has ended: x", "Begin.").Because(session.ErrEnded)
	refuse := func(p *problem.Problem) {
		o.all.refuse.Store(p)
		o.h.gw.call = func(context.Context, gate.LaneCall) (gate.CallResult, error) { return gate.CallResult{}, p }
		o.h.gw.retrieve = func(context.Context, ops.RetrieveRequest) (json.RawMessage, error) { return nil, p }
	}
	defer func() { o.all.refuse.Store(nil); o.h.gw.call, o.h.gw.retrieve = nil, nil }()
	for _, p := range []*problem.Problem{
		problem.New(problem.ToolLocked, "It is locked.", "Ask.").With("status", "quarantined"),
		problem.New(problem.ToolNotFound, "There is none", "Look \"again\"."), problem.New(problem.InvalidName, "It is no name", ""),
		problem.New(problem.ServerNotFound, "No server.", "Add it."), problem.New(problem.InvalidParameter, "It is wrong.", "Right it."),
		problem.New(problem.Timeout, "Too slow.", ""), problem.New(problem.Interrupted, "Stopped.", ""),
		problem.New(problem.ServerUnavailable, "Away.", "Wait.").With("state", "failed"), problem.From(errors.New("a bug")),
		problem.New(problem.UpstreamError, "It said 401.", "").With("http_status", 401), problem.New(problem.UpstreamError, "It said 403.", "").With("http_status", 403),
		problem.New(problem.UpstreamError, "It said 404.", "").With("http_status", 404), problem.New(problem.UpstreamError, "It said 429.", "").With("http_status", 429),
		problem.New(problem.LoginNeeded, "Log in.", "Do."), gone,
	} {
		refuse(p)
		what := string(p.Code) + " " + p.Message
		o.request("tools/call "+what, "tools/call", `"name":"call_tool_read","arguments":{}`)
		o.request("prompts/get "+what, "prompts/get", `"name":"x"`)
		o.request("retrieve "+what, "tools/call", `"name":"retrieve_tools","arguments":{"query":"q"}`)
	}
}

func (o *outcomes) batches() {
	if o.version == mcp.Modern {
		return
	}
	o.session = ""
	o.open()
	o.send("a batch", "both", "POST", `[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/initialized"},`+
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"call_tool_read","arguments":{"name":"a:b"},"how":"json"}},`+
		`{"jsonrpc":"2.0","id":3,"method":"initialize","params":{}},{"jsonrpc":"2.0","id":4,"method":"prompts/get","params":{"name":"x","how":"rpc 404"}},`+
		`{"jsonrpc":"2.0","id":5,"method":"tools/list"},{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":7}},{"id":7,"method":"ping"},`+
		`{"jsonrpc":"2.0","id":"one:8","result":{}}]`, nil)
	o.send("notices", "both", "POST", `[{"jsonrpc":"2.0","method":"notifications/initialized"}]`, nil)
	o.send("DELETE", "both", "DELETE", "", nil)
}
