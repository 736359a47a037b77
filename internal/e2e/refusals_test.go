package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// refusedRecord is a record of a refused call, as REST returns it.
type refusedRecord struct {
	ID           string
	Type         string
	Status       string
	ServerName   string `json:"server_name"`
	ToolName     string `json:"tool_name"`
	Actor        string
	Source       string
	ErrorMessage string    `json:"error_message"`
	Repeated     int64     `json:"repeated"`
	FirstTime    time.Time `json:"first_time"`
	LastTime     time.Time `json:"last_time"`
	Arguments    json.RawMessage
	Metadata     struct {
		ErrorCode string `json:"error_code"`
		Action    string
		Intent    *struct {
			OperationType string `json:"operation_type"`
		}
		Decision struct {
			Outcome, Check string
			ConfigRevision string `json:"config_revision"`
		}
	}
}

// records returns the records that a filter selects, and their number.
func (d *daemon) records(filter string) (records []refusedRecord, total int64) {
	d.t.Helper()
	status, body := d.rest("GET", "/activity?limit=1000&"+filter, "")
	var page struct {
		Activities []refusedRecord
		Total      int64
	}
	if err := json.Unmarshal(body, &page); err != nil || status != http.StatusOK {
		d.t.Fatalf("status %d, %v: %s", status, err, body)
	}
	return page.Activities, page.Total
}

// send sends a request unchanged and returns the answer.
func (d *daemon) send(method, path, body string, headers ...string) (int, []byte) {
	d.t.Helper()
	req, err := http.NewRequest(method, "http://"+d.address+path, strings.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		d.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	return resp.StatusCode, answer
}

// refusalCase is one kind of refused call.
type refusalCase struct {
	name                 string
	send                 func() (int, []byte)
	answer               string // a part of the expected answer
	server, tool, code   string // of the expected record
	actor, source, extra string // of the record, if they are not agent and mcp
	lane                 string // the lane in the record, if any
}

// TestEveryRefusalIsRecorded sends every kind of refused call to the real binary, on every endpoint, and checks its
// record.
func TestEveryRefusalIsRecorded(t *testing.T) {
	t.Parallel()
	u := startUpstream(t, `{"name":"echo","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`,
		`{"name":"wipe","inputSchema":{"type":"object"},"annotations":{"destructiveHint":true}}`)
	d := startDaemon(t, fmt.Sprintf(`{"mcpServers":{"m":{"url":%[1]q},"dark":{"url":%[1]q,"enabled":false},"jail":{"url":%[1]q,"quarantined":true}}}`, u.URL))
	d.awaitTools("m:echo")
	legacy := d.legacy()
	_, _, header := relayed(d, "m")
	session := header.Get("Mcp-Session-Id")

	for _, c := range refusalCases(d, legacy.session, session) {
		_, before := d.records("type=policy_decision")
		status, answer := c.send()
		records, after := d.records("type=policy_decision")
		if after != before+1 {
			t.Errorf("%s: %d records were written, answer %d %s", c.name, after-before, status, answer)
			continue
		}
		got := records[0]
		if c.actor == "" {
			c.actor = "agent"
		}
		if c.source == "" {
			c.source = "mcp"
		}
		if got.ServerName != c.server || got.ToolName != c.tool || got.Metadata.ErrorCode != c.code || got.Status != "blocked" ||
			got.ErrorMessage == "" || got.Actor != c.actor || got.Source != c.source || got.Metadata.Action != c.extra {
			t.Errorf("%s: %+v", c.name, got)
		}
		if intent := got.Metadata.Intent; (intent != nil) != (c.lane != "") || intent != nil && intent.OperationType != c.lane {
			t.Errorf("%s: the recorded intent is %+v, want %q", c.name, intent, c.lane)
		}
		if by := got.Metadata.Decision; by.Outcome != "refused" || by.Check == "" || by.ConfigRevision == "" {
			t.Errorf("%s: the record does not say which check refused: %+v", c.name, by)
		}
		if !bytes.Contains(answer, []byte(c.answer)) {
			t.Errorf("%s: answer %d %s, want %s in it", c.name, status, answer, c.answer)
		}
		for _, secret := range []string{"hunter2", "SECRETHANDLE"} {
			if bytes.Contains(got.Arguments, []byte(secret)) {
				t.Errorf("%s: the record contains a secret: %s", c.name, got.Arguments)
			}
		}
	}
	if calls := u.calls.Load(); calls != 0 {
		t.Errorf("%d calls reached the server", calls)
	}
}

// relayed opens a session on the pass-through endpoint of a server.
func relayed(d *daemon, server string) (int, []byte, http.Header) {
	d.t.Helper()
	req, err := http.NewRequest(http.MethodPost, "http://"+d.address+"/mcp/servers/"+server, strings.NewReader(
		`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"`+legacyRevision+`","capabilities":{},"clientInfo":{"name":"e2e","version":"1"}}}`))
	if err != nil {
		d.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		d.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.Header.Get("Mcp-Session-Id") == "" {
		d.t.Fatalf("status %d, %v: %s", resp.StatusCode, err, body)
	}
	return resp.StatusCode, body, resp.Header
}

// refusalCases returns every kind of refused call. session and transparent are the IDs of legacy sessions on /mcp and
// on the endpoint of a server.
func refusalCases(d *daemon, session, transparent string) []refusalCase {
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"` + modernRevision + `","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"e2e","version":"1"}}`
	modern := func(path, name, params string) func() (int, []byte) {
		return func() (int, []byte) {
			return d.send("POST", path, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{`+params+`,`+meta+`}}`,
				"Mcp-Protocol-Version", modernRevision, "Mcp-Method", "tools/call", "Mcp-Name", name)
		}
	}
	tool := func(name, arguments string) func() (int, []byte) {
		return modern("/mcp", name, fmt.Sprintf(`"name":%q,"arguments":%s`, name, arguments))
	}
	own := func(path, name string) func() (int, []byte) {
		return modern(path, name, fmt.Sprintf(`"name":%q,"arguments":{}`, name))
	}
	older := func(path, session, message string) func() (int, []byte) {
		headers := []string{"Mcp-Protocol-Version", legacyRevision}
		if session != "" {
			headers = append(headers, "Mcp-Session-Id", session)
		}
		return func() (int, []byte) { return d.send("POST", path, message, headers...) }
	}
	call := func(params string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{` + params + `}}`
	}
	rest := func(body string, headers ...string) func() (int, []byte) {
		return func() (int, []byte) { return d.send("POST", "/api/v1/tools/call", body, headers...) }
	}
	key := d.key()
	return []refusalCase{
		{name: "transparent, disabled", lane: "destructive", send: own("/mcp/servers/dark", "echo"), answer: `"code":"TOOL_LOCKED"`, server: "dark", tool: "echo", code: "TOOL_LOCKED"},
		{name: "transparent, quarantined", lane: "destructive", send: own("/mcp/servers/jail", "echo"), answer: `"code":"TOOL_LOCKED"`, server: "jail", tool: "echo", code: "TOOL_LOCKED"},
		{name: "transparent, quarantined, another tool", lane: "destructive", send: own("/mcp/s/jail", "nothing"), answer: `"code":"TOOL_LOCKED"`, server: "jail", tool: "nothing", code: "TOOL_LOCKED"},
		{name: "transparent, unknown", lane: "destructive", send: own("/mcp/servers/none", "echo"), answer: `"code":"SERVER_NOT_FOUND"`, server: "none", tool: "echo", code: "SERVER_NOT_FOUND"},
		{name: "transparent, no tool", lane: "destructive", send: own("/mcp/servers/m", "ecco"), answer: `"code":"TOOL_NOT_FOUND"`, server: "m", tool: "ecco", code: "TOOL_NOT_FOUND"},
		{name: "transparent, no session", send: older("/mcp/servers/dark", "", call(`"name":"echo"`)), answer: "Mcp-Session-Id", server: "dark", tool: "echo", code: "INVALID_REQUEST"},
		{name: "transparent, no name", send: older("/mcp/servers/m", transparent, call(`"name":7`)), answer: `INVALID_NAME`, server: "m", code: "INVALID_NAME"},
		{name: "transparent, a notification", send: older("/mcp/servers/m", transparent, `{"jsonrpc":"2.0","method":"tools/call","params":{"name":"wipe"}}`),
			answer: "must be a request", server: "m", tool: "wipe", code: "INVALID_REQUEST"},
		{name: "all, disabled", lane: "destructive", send: own("/mcp/all", "dark__other"), answer: `"code":"TOOL_LOCKED"`, server: "dark", tool: "other", code: "TOOL_LOCKED"},
		{name: "all, no such name", lane: "destructive", send: own("/mcp/all", "echo"), answer: `INVALID_NAME`, tool: "echo", code: "INVALID_NAME"},
		{name: "disabled", lane: "read", send: tool("call_tool_read", `{"name":"dark:echo"}`), answer: "TOOL_LOCKED", server: "dark", tool: "echo", code: "TOOL_LOCKED"},
		{name: "quarantined", lane: "read", send: tool("call_tool_read", `{"name":"jail:none"}`), answer: "TOOL_LOCKED", server: "jail", tool: "none", code: "TOOL_LOCKED"},
		{name: "the wrong lane", lane: "read", send: tool("call_tool_read", `{"name":"m:wipe"}`), answer: "SERVER_MISMATCH", server: "m", tool: "wipe", code: "SERVER_MISMATCH"},
		{name: "arguments given twice", lane: "read", send: tool("call_tool_read", `{"name":"m:echo","args":{},"args_json":"{}"}`), answer: "INVALID_ARGS", server: "m", tool: "echo", code: "INVALID_ARGS"},
		{name: "a name that is none", lane: "read", send: tool("call_tool_read", `{"name":{"x":1}}`), answer: "INVALID_NAME", tool: `{"x":1}`, code: "INVALID_NAME"},
		{name: "call_tool", send: tool("call_tool", `{"name":"m:echo","token":"ghp_0123456789abcdefghijklmnopqrstuvwxyz"}`),
			answer: `"code":-32602,"message":"Tool 'call_tool' not found. Use call_tool_read, call_tool_write, or call_tool_destructive with matching intent.operation_type. See retrieve_tools for annotations and recommendations."`,
			tool:   "call_tool", code: "TOOL_NOT_FOUND"},
		{name: "call_tool in a session", send: older("/mcp", session, call(`"name":"call_tool","arguments":{}`)), answer: `-32602`, tool: "call_tool", code: "TOOL_NOT_FOUND"},
		{name: "no such built-in tool", send: tool("m:echo", `{}`), answer: `-32602`, tool: "m:echo", code: "TOOL_NOT_FOUND"},
		{name: "no name at all", send: older("/mcp", session, call(`"arguments":{}`)), answer: "params.name", code: "INVALID_PARAMETER"},
		{name: "arguments that are none", lane: "read", send: tool("call_tool_read", `[1]`), answer: "params.arguments", tool: "call_tool_read", code: "INVALID_PARAMETER"},
		{name: "params that are none", send: older("/mcp", session, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[1]}`), answer: "params", code: "INVALID_PARAMETER"},
		{name: "the header names another tool", lane: "destructive", send: modern("/mcp", "call_tool_read", `"name":"call_tool_destructive","arguments":{"name":"m:wipe"}`),
			answer: "Header mismatch", tool: "call_tool_destructive", code: "INVALID_REQUEST"},
		{name: "a session that is none", lane: "read", send: older("/mcp", "NOSUCHSESSION", call(`"name":"call_tool_read"`)), answer: "Session not found", tool: "call_tool_read", code: "INVALID_REQUEST"},
		{name: "a search for a number", send: tool("retrieve_tools", `{"query":3}`), answer: "INVALID_PARAMETER", tool: "retrieve_tools", code: "INVALID_PARAMETER"},
		{name: "a handle that is none", send: tool("read_result", `{"handle":"SECRETHANDLE"}`), answer: "NOT_FOUND", tool: "read_result", code: "NOT_FOUND"},
		{name: "an operation that is none", send: tool("upstream_servers", `{"operation":"approve","name":"jail"}`), answer: "INVALID_PARAMETER", server: "jail", tool: "upstream_servers", code: "INVALID_PARAMETER", extra: "approve"},
		{name: "a server that is not there", send: tool("upstream_servers", `{"operation":"get","name":"none"}`), answer: "SERVER_NOT_FOUND", server: "none", tool: "upstream_servers", code: "SERVER_NOT_FOUND", extra: "get"},
		{name: "a restart", send: tool("upstream_servers", `{"operation":"restart","name":"dark"}`), answer: "SERVER_UNAVAILABLE", server: "dark", tool: "upstream_servers", code: "SERVER_UNAVAILABLE", extra: "restart"},
		{name: "a proposal with a taken name", send: tool("upstream_servers", `{"operation":"add","name":"m","command":"sh","env_json":"{\"P\":\"hunter2\"}"}`),
			answer: "CONFLICT", server: "m", tool: "upstream_servers", code: "CONFLICT", extra: "add"},
		{name: "a proposal with a reference", send: tool("upstream_servers", `{"operation":"add","name":"x","command":"sh","env_json":"{\"P\":\"${env:HOME}\"}"}`),
			answer: "INVALID_PARAMETER", server: "x", tool: "upstream_servers", code: "INVALID_PARAMETER", extra: "add"},
		{name: "a proposal without a command", send: tool("upstream_servers", `{"operation":"add","name":"x"}`),
			answer: "INVALID_PARAMETER", server: "x", tool: "upstream_servers", code: "INVALID_PARAMETER", extra: "add"},
		{name: "a wrong key on MCP", send: func() (int, []byte) {
			return d.send("POST", "/mcp", call(`"name":"call_tool_read"`), "X-API-Key", "wrong")
		}, answer: "API key", code: "UNAUTHORIZED", actor: "nobody"},
		{name: "REST, a wrong key", send: rest(`{}`, "X-API-Key", "wrong"), answer: "UNAUTHORIZED", code: "UNAUTHORIZED", actor: "nobody", source: "rest"},
		{name: "REST, no key", send: rest(`{}`), answer: "UNAUTHORIZED", code: "UNAUTHORIZED", source: "rest"},
		{name: "REST, no JSON", send: rest(`{`, "X-API-Key", key), answer: "activity_id", code: "INVALID_REQUEST", actor: "admin", source: "rest"},
		{name: "REST, no variant", send: rest(`{"name":"m:echo"}`, "X-API-Key", key), answer: "activity_id", tool: "m:echo", code: "INVALID_PARAMETER", actor: "admin", source: "rest"},
		{name: "REST, an unknown member", lane: "read", send: rest(`{"name":"m:echo","tool_variant":"call_tool_read","also":1}`, "X-API-Key", key),
			answer: "activity_id", tool: "m:echo", code: "INVALID_REQUEST", actor: "admin", source: "rest"},
		{name: "REST, an unknown parameter", send: func() (int, []byte) {
			return d.send("POST", "/api/v1/tools/call?dry=1", `{}`, "X-API-Key", key)
		}, answer: "activity_id", code: "INVALID_PARAMETER", actor: "admin", source: "rest"},
		{name: "REST, the wrong lane", lane: "read", send: rest(`{"name":"m:wipe","tool_variant":"call_tool_read"}`, "X-API-Key", key),
			answer: "activity_id", server: "m", tool: "wipe", code: "SERVER_MISMATCH", actor: "admin", source: "rest"},
	}
}

// TestRefusalFloodKeepsCalls is a short attack: an unauthenticated client fills a small log with refused calls that all
// differ. Records of calls that reached a server stay, and the flood is reported.
func TestRefusalFloodKeepsCalls(t *testing.T) {
	t.Parallel()
	const calls, refused, clients = 500, 20_000, 16
	u := startUpstream(t, `{"name":"wipe","inputSchema":{"type":"object"},"annotations":{"destructiveHint":true}}`)
	d := startDaemon(t, u.config("m", `"activity_max_records": 1000, "activity_max_size_mb": 16`))
	d.awaitTools("m:wipe")
	a := d.stateless()
	for i := range calls {
		if r := a.call("call_tool_destructive", fmt.Sprintf(`{"name":"m:wipe","args":{"n":%d}}`, i)); r.IsError {
			t.Fatal(r.text())
		}
	}
	d.records("type=system") // wait until everything is in the database
	before := sizeOf(t, d.dataDir())
	var wg sync.WaitGroup
	for c := range clients {
		wg.Go(func() {
			client := &http.Client{Timeout: patience, Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			for i := range refused / clients {
				a := &agent{d: d, client: client, modern: true}
				if c%2 == 0 { // every second call is the same
					_, _ = a.tryCall("call_tool_read", `{"name":"m:wipe"}`)
				} else {
					_, _ = a.tryCall("call_tool_read", fmt.Sprintf(`{"name":"s%d-%d:t%d","args":{"text":%q}}`, c, i, i, strings.Repeat("x ", 2000)))
				}
				if i%200 == 0 {
					client.CloseIdleConnections() // use another connection
				}
			}
		})
	}
	wg.Wait()
	if _, total := d.records("type=tool_call"); total != calls {
		t.Errorf("%d of %d calls are in the log", total, calls)
	}
	same, _ := d.records("type=policy_decision&tool=wipe")
	if len(same) != 1 || same[0].Repeated != refused/2 || !same[0].LastTime.After(same[0].FirstTime) {
		t.Errorf("%d equal refusals are recorded as %+v", refused/2, same)
	}
	if _, total := d.records("type=policy_decision"); total > 1100 {
		t.Errorf("%d records of refusals", total)
	}
	flood, _ := d.records("type=system")
	said := false
	for _, r := range flood {
		said = said || r.Metadata.Action == "refusals_flood"
	}
	if _, out, _ := d.cli("status"); !said || !strings.Contains(out, "Very many calls of actor agent were refused") {
		t.Errorf("the status does not report the flood: %+v, %s", flood, out)
	}
	if grown := sizeOf(t, d.dataDir()) - before; grown > 10<<20 {
		t.Errorf("the log has grown by %d bytes", grown)
	}
	d.kill()
	d.start()
	if _, total := d.records("type=tool_call"); total != calls {
		t.Errorf("after kill -9, %d of %d calls are in the log", total, calls)
	}
}

// sizeOf returns the size of all files in a directory.
func sizeOf(t *testing.T, dir string) (size int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		if info, err := e.Info(); err == nil { // otherwise the file was removed
			size += info.Size()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return size
}
