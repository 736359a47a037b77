package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpproxy/internal/problem"
)

// callsAndChanges is the filter for records that a read-only operation must not create.
const callsAndChanges = "type=tool_call,policy_decision,approval,config_change"

// tried is the output of `policy try`.
type tried struct {
	Calls, Same, Refused, Allowed, Unknown int64
	Groups                                 []struct {
		Tool, Called, Was, Would, Check, Code, Status, Why string
		ToolVariant                                        string `json:"tool_variant"`
		Calls                                              int64
		Examples                                           []string
	}
}

// callAt calls a tool at a path with the official client and reports whether the call failed.
func (d *daemon) callAt(path, name, arguments string) bool {
	d.t.Helper()
	r, err := d.sdkAt(path, modernRevision, nil).CallTool(within(d.t), &mcp.CallToolParams{Name: name, Arguments: json.RawMessage(arguments)})
	if err != nil {
		d.t.Fatal(err)
	}
	return r.IsError
}

// TestPolicyTry makes calls of each kind. `policy try` with the current file reports no difference. With a changed file
// it reports the calls that the file would have refused or allowed, with example records. It changes nothing.
func TestPolicyTry(t *testing.T) {
	t.Parallel()
	u := startUpstream(t,
		`{"name":"look","inputSchema":{"type":"object","properties":{"n":{"type":"integer"},"password":{"type":"string"}}},"annotations":{"readOnlyHint":true}}`,
		`{"name":"wipe","inputSchema":{"type":"object"},"annotations":{"destructiveHint":true}}`,
		`{"name":"denied","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`)
	file := func(more string) string {
		return fmt.Sprintf(`{"validate_arguments": "off", "profiles": {"reading": {"lanes": ["read"]}}, "mcpServers": {"s": {"url": %q%s}}}`, u.URL, more)
	}
	d := startDaemon(t, file(`, "disabled_tools": ["denied"]`))
	d.awaitTools("s:look", "s:wipe")
	a := d.legacy()
	a.call("call_tool_read", `{"name":"s:look","args":{"n":1}}`)
	a.call("call_tool_read", `{"name":"s:look","args":{"password":"hunter2-Zq81xK3"}}`)
	a.call("call_tool_destructive", `{"name":"s:wipe"}`)
	a.call("call_tool_read", `{"name":"s:wipe"}`)
	a.call("call_tool_read", `{"name":"s:denied"}`)
	d.callAt("/mcp/p/reading", "call_tool_destructive", `{"name":"s:wipe"}`)
	d.callAt("/mcp/all", "s__wipe", `{}`)
	before := d.readConfig()
	_, records := d.records(callsAndChanges)

	try := func(text string) (out tried) {
		t.Helper()
		path := filepath.Join(t.TempDir(), "candidate.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		code, stdout, stderr := d.cli("policy", "try", path, "-o", "json")
		if err := json.Unmarshal([]byte(stdout), &out); err != nil || code != 0 {
			t.Fatalf("%d %s %v", code, stderr, err)
		}
		return out
	}
	said := func(out tried) (all []string) {
		for _, g := range out.Groups {
			all = append(all, fmt.Sprintf("%d %s %s %s→%s %s %s%s", g.Calls, g.Tool, g.Called, g.Was, g.Would, g.Check, g.Code, g.Status))
		}
		slices.Sort(all)
		return all
	}
	if out := try(before); out.Calls != 7 || out.Same != 7 {
		t.Errorf("the file as it is: %+v", out)
	}
	out := try(file(`, "disabled_tools": ["wi*"], "validate_arguments": "reject"`))
	want := []string{
		"1 s:denied lane refused→allowed callable TOOL_LOCKEDdisabled_by_config", "1 s:look lane allowed→unknown  ",
		"1 s:wipe lane allowed→refused callable TOOL_LOCKEDdisabled_by_config", "1 s:wipe name allowed→refused callable TOOL_LOCKEDdisabled_by_config",
	}
	if got := said(out); !slices.Equal(got, want) || out.Same != 3 || out.Refused != 2 || out.Allowed != 1 || out.Unknown != 1 {
		t.Errorf("got %q\nwant %q\n%+v", got, want, out)
	}
	for _, g := range out.Groups {
		if r := d.record(g.Examples[0]); r.ServerName+":"+r.ToolName != g.Tool || r.Metadata.ToolVariant != g.ToolVariant {
			t.Errorf("the example of %+v is %+v", g, r)
		}
	}
	if code, stdout, _ := d.cli("policy", "try", d.configPath(), "--since", "1h"); code != 0 || !strings.Contains(stdout, "7 calls since") {
		t.Errorf("%d %s", code, stdout)
	}

	bad := filepath.Join(t.TempDir(), "bad.json")
	if err := os.WriteFile(bad, []byte("{\n  \"tols_limit\": 3\n}"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, stderr := d.cli("policy", "try", bad)
	if code != problem.ExitFailed || !strings.Contains(stderr, "bad.json:2:3") || !strings.Contains(stderr, "tools_limit") {
		t.Errorf("a bad file: %d %s", code, stderr)
	}
	if code, _, _ := d.cli("policy", "try", filepath.Join(t.TempDir(), "none.json")); code != problem.ExitNotFound {
		t.Errorf("no file: %d", code)
	}
	if _, after := d.records(callsAndChanges); d.readConfig() != before || after != records {
		t.Errorf("policy try changed the file or the log: %d records, %d before", after, records)
	}
}

// TestCan: `can` predicts the outcome of a call, the deciding check and the reason, and the real call confirms them.
// `can` calls nothing.
func TestCan(t *testing.T) {
	t.Parallel()
	u := startUpstream(t,
		`{"name":"look","inputSchema":{"type":"object","properties":{"n":{"type":"integer"}}},"annotations":{"readOnlyHint":true}}`,
		`{"name":"wipe","inputSchema":{"type":"object"},"annotations":{"destructiveHint":true}}`)
	d := startDaemon(t, fmt.Sprintf(`{"profiles": {"reading": {"lanes": ["read"]}}, "mcpServers": {"s": {"url": %q}}}`, u.URL))
	d.awaitTools("s:look", "s:wipe")
	d.inHome(".claude.json", fmt.Sprintf(`{"mcpServers": {"mcpproxy": {"type": "http", "url": "http://%s/mcp/p/reading"}}}`, d.address))
	d.inHome(".claude/settings.json", `{"permissions": {"allow": ["mcp__mcpproxy__call_tool_read"]}}`)
	d.createToken("ci", "--servers", "other")
	_, records := d.records(callsAndChanges)
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"can claude-code s:look", 0, "✓ call_tool_read is allowed"},
		{"can claude-code s:look", 0, "In claude-code it runs without asking: allow mcp__mcpproxy__call_tool_read, "},
		{"can claude-code s:look", 0, "The profile 'reading' has the lanes read, and the lane of the call is write."},
		{"can claude-code s:wipe", problem.ExitRefused, "The profile 'reading' has the lanes read, and the tool counts as destructive."},
		{"can reading s:look --args {\"n\":\"x\"}", problem.ExitUsage, "is refused (schema)"},
		{"can agent:ci s:look", problem.ExitRefused, "The token 'ci' does not have the server 's'."},
		{"can readin s:look", problem.ExitNotFound, "Did you mean 'reading'?"},
		{"can reading s:loook", problem.ExitNotFound, "Did you mean 's:look'?"},
		{"can reading look", problem.ExitUsage, "Invalid tool name 'look'"},
		{"can reading", problem.ExitUsage, "Missing argument: server:tool."},
	} {
		if code, stdout, stderr := d.cli(strings.Fields(c.args)...); code != c.code || !strings.Contains(stdout+stderr, c.says) {
			t.Errorf("%s: %d, want %d and %q\n%s%s", c.args, code, c.code, c.says, stdout, stderr)
		}
	}
	if _, after := d.records(callsAndChanges); after != records {
		t.Errorf("%d records, %d before", after, records)
	}
	if !d.callAt("/mcp/p/reading", "call_tool_destructive", `{"name":"s:look"}`) {
		t.Error("the real call was not refused")
	}
}
