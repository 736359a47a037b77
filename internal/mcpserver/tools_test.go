package mcpserver

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, got) {
		t.Errorf("%s differs (run with -update when it is meant to); got\n%s", name, got)
	}
}

func indent(t *testing.T, raw []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := json.Indent(&out, raw, "", "  "); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	return append(out.Bytes(), '\n')
}

func TestDefinitions(t *testing.T) {
	for name, c := range map[string]struct {
		intent     bool
		management config.ServerManagement
	}{
		"tools_list.json":                {false, config.ManagePropose},
		"tools_list_require_intent.json": {true, config.ManagePropose},
		"tools_list_read.json":           {false, config.ManageRead},
		"tools_list_off.json":            {false, config.ManageOff},
	} {
		h := newHarness(t)
		h.cfg.Store(&config.Config{MCPManagement: c.management, Intent: policy.Rules{RequireIntent: c.intent}})
		var r struct {
			Tools json.RawMessage
		}
		if err := json.Unmarshal(h.legacy(h.open(mcp.Legacy), "tools/list", "").is(200).rpc().Result, &r); err != nil {
			t.Fatal(err)
		}
		if len(r.Tools) >= 5000 {
			t.Errorf("%s: %d bytes, must be under 5000", name, len(r.Tools))
		}
		t.Logf("%s: %d bytes", name, len(r.Tools))
		golden(t, name, indent(t, r.Tools))

		var modern struct {
			ResultType string `json:"resultType"`
			Tools      json.RawMessage
			TTLMs      *int   `json:"ttlMs"`
			CacheScope string `json:"cacheScope"`
			NextCursor *string
			Meta       map[string]json.RawMessage `json:"_meta"`
		}
		if err := json.Unmarshal(h.modern("tools/list", "").is(200).rpc().Result, &modern); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(modern.Tools, r.Tools) || modern.ResultType != "complete" || modern.TTLMs == nil || *modern.TTLMs < 0 ||
			modern.CacheScope != "private" || modern.NextCursor != nil || modern.Meta[mcp.MetaServerInfo] == nil {
			t.Errorf("%+v", modern)
		}
		for _, cursor := range []string{`{"cursor":""}`, `{"cursor":null}`, `{}`} {
			h.legacy(h.open(mcp.Legacy), "tools/list", cursor).is(200).rpc()
		}
		for _, cursor := range []string{`{"cursor":"x"}`, `{"cursor":5}`} {
			h.legacy(h.open(mcp.Legacy), "tools/list", cursor).is(200).fails(wirejson.CodeInvalidParams)
		}
	}
}

func TestManagementOff(t *testing.T) {
	h := newHarness(t)
	h.callModern(upstreamServers, `{"operation":"list"}`).tool()
	h.cfg.Store(&config.Config{MCPManagement: config.ManageOff})
	if a := h.modern("tools/list", ""); bytes.Contains(a.body, []byte(upstreamServers)) {
		t.Error("still offered")
	}
	h.callModern(upstreamServers, `{"operation":"list"}`).is(400).fails(wirejson.CodeInvalidParams)
	h.cfg.Store(&config.Config{MCPManagement: config.ManageRead})
	h.callModern(upstreamServers, `{"operation":"list"}`).tool()
}

func TestRetrieveTools(t *testing.T) {
	h := newHarness(t)
	const found = `{"query":"q","total":1,"tools":[{"name":"a:b","description":"says \"é\" \\ <b> \u2028 ` + "\u2028" + `","inputSchema":{"max":9007199254740993}}]}`
	h.gw.retrieve = func(ctxT, ops.RetrieveRequest) (json.RawMessage, error) { return json.RawMessage(found), nil }
	for _, a := range []answer{
		h.callModern(retrieveTools, `{"query":"q"}`),
		h.callLegacy(h.open(mcp.Legacy), retrieveTools, `{"query":"q"}`),
	} {
		r := a.tool()
		if string(r.StructuredContent) != found || len(r.Content) != 1 || r.Content[0].Text != found || r.Content[0].Type != "text" || r.IsError {
			t.Errorf("%s", a.body)
		}
	}
	type request = ops.RetrieveRequest
	for args, want := range map[string]request{
		`{"query":"q"}`:  {Query: "q"},
		`{"query":""}`:   {},
		`{"query":null}`: {},
		`{}`:             {},
		`{"query":"q","limit":5,"operation_type":"write","detail":"compact","include_disabled":true}`: {Query: "q", Limit: 5, Operation: policy.Write, Detail: "compact", IncludeDisabled: true},
		`{"query":"q","limit":0}`:                                                        {Query: "q", Limit: 1},
		`{"query":"q","limit":-5}`:                                                       {Query: "q", Limit: 1},
		`{"query":"q","limit":1000}`:                                                     {Query: "q", Limit: 100},
		`{"query":"q","limit":1e300}`:                                                    {Query: "q", Limit: 100},
		`{"query":"q","limit":10.0}`:                                                     {Query: "q", Limit: 10},
		`{"query":"q","limit":"5","include_disabled":"true"}`:                            {Query: "q", Limit: 5, IncludeDisabled: true},
		`{"query":"q","limit":" 1e1 ","include_disabled":"false"}`:                       {Query: "q", Limit: 10},
		`{"query":"q","limit":"","operation_type":"","detail":"","include_disabled":""}`: {Query: "q"},
		`{"query":"q","limit":null,"operation_type":null,"detail":null,"include_disabled":null,"nonsense":{}}`: {Query: "q"},
	} {
		h.callModern(retrieveTools, args).tool()
		got := h.gw.found[len(h.gw.found)-1]
		if got.Caller.ClientName != "tester" {
			t.Errorf("%+v", got.Caller)
		}
		got.Caller, got.UsageSeen = ops.Caller{}, nil
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v", args, got)
		}
	}
	n := len(h.gw.found)
	for args, want := range map[string][3]string{
		`{"query":5}`:                            {"query", "5", "a string"},
		`{"query":["a"]}`:                        {"query", `["a"]`, "a string"},
		`{"query":"q","limit":"abc"}`:            {"limit", "abc", "an integer from 1 to 100"},
		`{"query":"q","limit":"1.5"}`:            {"limit", "1.5", "an integer from 1 to 100"},
		`{"query":"q","limit":"[5]"}`:            {"limit", "[5]", "an integer from 1 to 100"},
		`{"query":"q","limit":"-inf"}`:           {"limit", "-inf", "an integer from 1 to 100"},
		`{"query":"q","limit":"0x1p4"}`:          {"limit", "0x1p4", "an integer from 1 to 100"},
		`{"query":"q","limit":1.5}`:              {"limit", "1.5", "an integer from 1 to 100"},
		`{"query":"q","limit":true}`:             {"limit", "true", "an integer from 1 to 100"},
		`{"query":"q","operation_type":"Read"}`:  {"operation_type", "Read", "read"},
		`{"query":"q","operation_type":" "}`:     {"operation_type", " ", "read"},
		`{"query":"q","operation_type":5}`:       {"operation_type", "5", "read"},
		`{"query":"q","detail":"all"}`:           {"detail", "all", "compact"},
		`{"query":"q","include_disabled":"yes"}`: {"include_disabled", "yes", "true"},
		`{"query":"q","include_disabled":1}`:     {"include_disabled", "1", "true"},
	} {
		p := h.callModern(retrieveTools, args).refused(problem.InvalidParameter)
		if string(p.Details["parameter"]) != strconv.Quote(want[0]) || !strings.Contains(p.Message, want[0]) ||
			!strings.Contains(p.Message, want[1]) || !strings.Contains(string(p.Details["allowed"]), want[2]) {
			t.Errorf("%s: %+v", args, p)
		}
	}
	if len(h.gw.found) != n {
		t.Error("a wrong request came through")
	}
	h.gw.retrieve = func(ctxT, ops.RetrieveRequest) (json.RawMessage, error) {
		return nil, problem.New(problem.Overloaded, "busy", "wait")
	}
	h.callModern(retrieveTools, `{"query":"q"}`).refused(problem.Overloaded)
}

func TestReadResult(t *testing.T) {
	h := newHarness(t)
	if r := h.callModern(readResult, `{"handle":"h","offset":100,"limit":50,"path":"$.content[0]"}`).tool(); r.Content[0].Text != `{"text":"part"}` {
		t.Errorf("%+v", r)
	}
	h.callModern(readResult, `{"handle":"h","offset":"100","limit":"50","path":"$.content[0]"}`).tool()
	got := h.gw.reads[0]
	if h.gw.reads[1] != got {
		t.Errorf("numbers as text: %+v", h.gw.reads[1])
	}
	if got.Handle != "h" || got.Offset != 100 || got.Limit != 50 || got.Path != "$.content[0]" || got.Caller.Actor.String() != "agent" {
		t.Errorf("%+v", got)
	}
	for _, args := range []string{`{}`, `{"handle":5}`, `{"handle":"h","offset":-1}`, `{"handle":"h","offset":"x"}`, `{"handle":"h","limit":0}`, `{"handle":"h","path":5}`} {
		h.callModern(readResult, args).refused(problem.InvalidParameter)
	}
	if len(h.gw.reads) != 2 {
		t.Error("a wrong request came through")
	}
}

func TestUpstreamServers(t *testing.T) {
	h := newHarness(t)
	list := func(want string) {
		t.Helper()
		if r := h.callModern(upstreamServers, `{"operation":"list"}`).tool(); string(r.StructuredContent) != want || r.Content[0].Text != want {
			t.Errorf("got %s\nwant %s", r.StructuredContent, want)
		}
	}
	list(`{"servers":[]}`)
	h.gw.servers = []ops.ServerView{
		{Name: "a", Protocol: "stdio", Enabled: true, State: "ready", ToolCount: 3, Command: "run", Args: []string{"--deep"}, PID: 7,
			Restarts: 2, Since: &time.Time{}, ProtocolVersion: mcp.Legacy, ServerInfo: json.RawMessage(`{"name":"x"}`)}, // agents see none of it
		{Name: "b", Protocol: "http", State: "stopped", ToolCount: 2, LastError: "what the server wrote to stderr", Failure: "x", URL: "http://inside.example/mcp", RetryAt: &time.Time{}, Tools: &ops.Counts{policy.Callable: 1, policy.DisabledByConfig: 1}},
	}
	const a = `{"name":"a","protocol":"stdio","enabled":true,"quarantined":false,"state":"ready","tool_count":3}`
	const b = `{"name":"b","protocol":"http","enabled":false,"quarantined":false,"state":"stopped","tool_count":2,"last_error":"x","tools":{"callable":1,"disabled_by_config":1}}`
	list(`{"servers":[` + a + `,` + b + `]}`)
	if r := h.callModern(upstreamServers, `{"operation":"get","name":"b"}`).tool(); string(r.StructuredContent) != `{"servers":[`+b+`]}` {
		t.Errorf("%s", r.StructuredContent)
	}
	h.callModern(upstreamServers, `{"operation":"get","name":"c"}`).refused(problem.ServerNotFound)
	h.gw.servers[1].Quarantined = true
	quarantined := strings.NewReplacer(`"quarantined":false`, `"quarantined":true`, `"last_error":"x",`, "").Replace(b)
	if r := h.callModern(upstreamServers, `{"operation":"get","name":"b"}`).tool(); string(r.StructuredContent) != `{"servers":[`+quarantined+`],"notice":"`+review("b")+`"}` {
		t.Errorf("%s", r.StructuredContent)
	}
	for _, args := range []string{`{}`, `{"operation":null}`, `{"operation":"get"}`, `{"operation":"get","name":5}`, `{"operation":5}`,
		`{"operation":"enable","name":"a"}`, `{"operation":"List"}`, `{"operation":"restart"}`, `{"operation":"add"}`} {
		p := h.callModern(upstreamServers, args).refused(problem.InvalidParameter)
		if string(p.Details["parameter"]) == `"operation"` && !strings.Contains(p.Message, "list, get, add or restart") {
			t.Errorf("%s: the allowed operations are not named: %s", args, p.Message)
		}
	}
}

// review is the text about a quarantined server in the answer.
func review(name string) string {
	return "A quarantined server cannot be used until the user has reviewed and approved it: `mcpproxy upstream approve " + name + "`, or the UI."
}

func TestProposals(t *testing.T) {
	h := newHarness(t)
	h.gw.servers = []ops.ServerView{{Name: "a", Protocol: "stdio", Enabled: true, State: "ready"}}
	entry := `{"servers":[{"name":"new","protocol":"stdio","enabled":true,"quarantined":true,"state":"stopped","tool_count":0}],"notice":"` + review("new") + `"}`
	for args, want := range map[string]ops.AddServerRequest{
		`{"operation":"add","name":"new","command":"npx","args_json":"[\"-y\",\"p\"]","env_json":"{\"A\":\"1\"}"}`: {Name: "new", Launch: config.Launch{Command: "npx", Args: []string{"-y", "p"}, Env: map[string]string{"A": "1"}}},
		`{"operation":"add","name":"new","command":"npx","args_json":["-y"],"env_json":{"A":"1"}}`:                 {Name: "new", Launch: config.Launch{Command: "npx", Args: []string{"-y"}, Env: map[string]string{"A": "1"}}},
		`{"operation":"add","name":"new","command":"c","args":["a"],"env":{"A":"1"}}`:                              {Name: "new", Launch: config.Launch{Command: "c", Args: []string{"a"}, Env: map[string]string{"A": "1"}}},
		`{"operation":"add","name":"new","url":"https://example.com/mcp"}`:                                         {Name: "new", Launch: config.Launch{URL: "https://example.com/mcp"}},
		`{"operation":"add","name":"new","url":"https://x","quarantined":false,"enabled":true,"trust":"auto"}`:     {Name: "new", Launch: config.Launch{URL: "https://x"}},
	} {
		if r := h.callModern(upstreamServers, args).tool(); string(r.StructuredContent) != entry {
			t.Errorf("%s: %s", args, r.StructuredContent)
		}
		if got := h.gw.added[len(h.gw.added)-1]; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v", args, got)
		}
	}
	n := len(h.gw.added)
	const secret = "hunter2-hunter2"
	for _, args := range []string{
		`{"operation":"add","url":"https://x"}`, `{"operation":"add","name":"new"}`, `{"operation":"add","name":"new","url":"u","command":"c"}`,
		`{"operation":"add","name":"new","command":"c","args_json":"` + secret + `"}`, `{"operation":"add","name":"new","command":"c","args_json":"{}"}`,
		`{"operation":"add","name":"new","command":"c","args_json":"[1]"}`, `{"operation":"add","name":"new","command":"c","args_json":"[\"a\"] x"}`,
		`{"operation":"add","name":"new","command":"c","env_json":"[]"}`, `{"operation":"add","name":"new","command":"c","env_json":"{\"A\":1}"}`,
		`{"operation":"add","name":"new","command":"c","env_json":"{\"A\":\"` + secret + `\",\"A\":\"2\"}"}`, `{"operation":"add","name":"new","command":5}`,
		`{"operation":"add","name":"new","url":"https://x/?k=${env:TOKEN}"}`, `{"operation":"add","name":"new","command":"${env:SHELL}"}`,
		`{"operation":"add","name":"new","command":"c","args":["a"],"args_json":"[\"a\"]"}`, `{"operation":"add","name":"new","command":"c","env":{"A":"` + secret + `"},"env_json":"{}"}`,
		`{"operation":"add","name":"new","url":"https://x","headers":{"A":"` + secret + `"}}`,
		`{"operation":"add","name":"new","command":"c","args_json":"[\"a\",\"${keyring:K}\"]"}`, `{"operation":"add","name":"new","command":"c","env_json":"{\"A\":\"x${env:TOKEN}\"}"}`,
	} {
		a := h.callModern(upstreamServers, args)
		a.refused(problem.InvalidParameter)
		if strings.Contains(string(a.body), secret) {
			t.Errorf("%s: the value is repeated: %s", args, a.body)
		}
	}
	if len(h.gw.added) != n {
		t.Error("a wrong proposal came through")
	}
	h.callModern(upstreamServers, `{"operation":"add","name":"taken","command":"c"}`).refused(problem.Conflict)
	if r := h.callModern(upstreamServers, `{"operation":"restart","name":"a"}`).tool(); !strings.Contains(string(r.StructuredContent), `"name":"a"`) {
		t.Errorf("%s", r.StructuredContent)
	}
	h.callModern(upstreamServers, `{"operation":"restart","name":"c"}`).refused(problem.ServerNotFound)
	// The API key does not give a model the rights of a user.
	h.modern("tools/call", `"name":"upstream_servers","arguments":{"operation":"add","name":"new","command":"c"}`, "X-API-Key", testKey).tool()
	h.modern("tools/call", `"name":"upstream_servers","arguments":{"operation":"restart","name":"a"}`, "X-API-Key", testKey).tool()
	for _, c := range h.gw.asked {
		if c.Actor.String() != "agent" || c.Source != "mcp" || c.ClientName != "tester" {
			t.Errorf("%+v", c)
		}
	}
}

// With mcp_management: read, an agent can only read.
func TestManagementRead(t *testing.T) {
	h := newHarness(t)
	h.cfg.Store(&config.Config{MCPManagement: config.ManageRead})
	h.callModern(upstreamServers, `{"operation":"list"}`).tool()
	for _, args := range []string{`{"operation":"add","name":"new","command":"c"}`, `{"operation":"restart","name":"a"}`} {
		if p := h.callModern(upstreamServers, args).refused(problem.InvalidParameter); !strings.Contains(p.Message, "must be list or get") {
			t.Errorf("%s: %s", args, p.Message)
		}
	}
	if len(h.gw.asked) != 0 {
		t.Error("it came through")
	}
	h.cfg.Store(&config.Config{MCPManagement: "unheard of"})
	if !strings.Contains(string(h.modern("tools/list", "").body), retrieveTools) || strings.Contains(string(h.modern("tools/list", "").body), upstreamServers) {
		t.Error("an unknown management offers upstream_servers")
	}
}
