package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Servers from npm answer their calls in a strict sandbox, and cannot do what it forbids.
func TestSandboxedServersFromNpm(t *testing.T) {
	t.Parallel()
	files := t.TempDir()
	entries := map[string]any{}
	var servers []npmServer
	for _, s := range npmServers(t, files) {
		rules := map[string]any{"mode": "strict", "write": []string{files}}
		switch s.name {
		case "playwright": // its browser needs unix sockets
			continue
		case "files":
			rules = map[string]any{"mode": "strict", "read": []string{files}}
		case "context7", "mongodb":
			rules["network"] = "all"
		}
		s.entry["sandbox"] = rules
		entries[s.name] = s.entry
		servers = append(servers, s)
	}
	config, err := json.Marshal(map[string]any{"mcpServers": entries})
	if err != nil {
		t.Fatal(err)
	}
	d := startDaemon(t, string(config))
	for _, s := range servers {
		d.awaitTools(s.name + ":" + s.calls[0].tool)
		for _, c := range s.calls {
			if _, stdout, stderr := d.cli("call", "tool-"+c.lane, s.name+":"+c.tool, "--args", c.arguments, "-o", "json"); !strings.Contains(strings.ReplaceAll(stdout+stderr, `": `, `":`), c.want) {
				t.Errorf("%s:%s: %s %s", s.name, c.tool, stdout, stderr)
			}
		}
	}
	target := filepath.Join(files, "new.txt")
	arguments, _ := json.Marshal(map[string]string{"path": target, "content": "x"})
	if code, stdout, stderr := d.cli("call", "tool-destructive", "files:write_file", "--args", string(arguments)); code == 0 {
		t.Errorf("a file was written: %s %s", stdout, stderr)
	}
	if _, err := os.Stat(target); err == nil {
		t.Error("the file exists")
	}
}

// unhintedServer is an MCP server for node, with one tool that has no hints.
const unhintedServer = `
const say = (id, result) => process.stdout.write(JSON.stringify({jsonrpc: "2.0", id, result}) + "\n");
require("readline").createInterface({input: process.stdin}).on("line", (line) => {
  const m = JSON.parse(line);
  if (m.method === "initialize") say(m.id, {protocolVersion: m.params.protocolVersion, capabilities: {tools: {}}, serverInfo: {name: "plain", version: "1"}});
  else if (m.method === "tools/list") say(m.id, {tools: [{name: "frobnicate", description: "Frobnicate.", inputSchema: {type: "object"}}]});
  else if (m.method === "tools/call") say(m.id, {content: [{type: "text", text: "done"}]});
  else if (m.id !== undefined) say(m.id, {});
});
`

// A trusted sandbox that proves it puts a tool without hints into the read lane; a writable folder or a network does
// not. A change of the sandbox is a change of the launch.
func TestTrustSandbox(t *testing.T) {
	t.Parallel()
	_, node := peers(t)
	dir := t.TempDir()
	script := filepath.Join(dir, "plain.js")
	if err := os.WriteFile(script, []byte(unhintedServer), 0o600); err != nil {
		t.Fatal(err)
	}
	entry := func(sandbox map[string]any, more map[string]any) map[string]any {
		e := map[string]any{"command": node, "args": []string{script}, "sandbox": sandbox, "trust_sandbox": true}
		for k, v := range more {
			e[k] = v
		}
		return e
	}
	config, err := json.Marshal(map[string]any{"mcpServers": map[string]any{
		"proven":   entry(map[string]any{"mode": "strict"}, nil),
		"writes":   entry(map[string]any{"mode": "strict", "write": []string{dir}}, nil),
		"network":  entry(map[string]any{"mode": "strict", "network": "all"}, nil),
		"best":     entry(map[string]any{"mode": "strict", "best_effort": true}, nil),
		"doubtful": entry(map[string]any{"mode": "strict"}, map[string]any{"trust_sandbox": false}),
		"hinted":   entry(map[string]any{"mode": "strict"}, map[string]any{"hint_overrides": map[string]any{"*": map[string]any{"destructiveHint": true}}}),
		"waits":    entry(map[string]any{"mode": "strict"}, map[string]any{"quarantined": true}),
	}})
	if err != nil {
		t.Fatal(err)
	}
	d := startDaemon(t, string(config))
	run := func(want string, args ...string) string {
		t.Helper()
		_, stdout, stderr := d.cli(args...)
		if !strings.Contains(stdout+stderr, want) {
			t.Fatalf("mcpproxy %q: want %q\n%s\n%s", args, want, stdout, stderr)
		}
		return stdout
	}
	for name, lane := range map[string]string{"proven": "read", "writes": "write", "network": "write", "best": "write", "doubtful": "write", "hinted": "destructive"} {
		d.awaitTools(name + ":frobnicate")
		run(`"call_with": "call_tool_`+lane+`"`, "tools", "show", name+":frobnicate", "-o", "json")
	}
	run("done", "call", "tool-read", "proven:frobnicate")
	run(`"from": "sandbox"`, "activity", "show", firstRecord(t, run("", "activity", "list", "--tool", "proven:frobnicate", "-o", "json")), "-o", "json")
	run("may read only its own program, write nothing, no network", "upstream", "get", "proven")

	run("may read only its own program, write nothing, no network", "upstream", "review", "waits")
	run("Approved the launch", "upstream", "approve", "waits", "--yes")
	run("Approved waits", "upstream", "approve", "waits", "--yes")
	run("Set sandbox", "upstream", "set", "waits", "sandbox", `{"mode": "on", "read": ["`+dir+`"]}`)
	run("mcpproxy upstream approve waits", "upstream", "get", "waits")
	run("the home folder except keys, tokens and browser profiles and "+dir, "upstream", "review", "waits")
}

// firstRecord returns the ID of the first record of a list.
func firstRecord(t *testing.T, list string) string {
	t.Helper()
	var all struct {
		Activities []struct {
			ID string `json:"id"`
		} `json:"activities"`
	}
	if err := json.Unmarshal([]byte(list), &all); err != nil || len(all.Activities) == 0 {
		t.Fatalf("%v: %s", err, list)
	}
	return all.Activities[0].ID
}
