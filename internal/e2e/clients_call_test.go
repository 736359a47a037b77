package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// scriptedModel replaces the model of Claude Code. It calls one tool after another and keeps the result of each call.
type scriptedModel struct {
	calls [][2]string // tool names as Claude Code shows them, and arguments

	mu      sync.Mutex
	results []string
}

func (m *scriptedModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Tools    []struct{ Name string }
		Messages []struct{ Content json.RawMessage }
	}
	if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&asked) != nil || len(asked.Tools) == 0 {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	var results []string
	for _, message := range asked.Messages {
		var parts []struct {
			Type    string
			Content json.RawMessage
		}
		_ = json.Unmarshal(message.Content, &parts) // a plain text has no parts
		for _, part := range parts {
			if part.Type == "tool_result" {
				results = append(results, string(part.Content))
			}
		}
	}
	m.mu.Lock()
	m.results = results
	m.mu.Unlock()
	block, delta, stop := `{"type":"text","text":""}`, `{"type":"text_delta","text":"done"}`, "end_turn"
	if at := len(results); at < len(m.calls) {
		arguments, _ := json.Marshal(m.calls[at][1])
		block = fmt.Sprintf(`{"type":"tool_use","id":"toolu_%d","name":"%s","input":{}}`, at, m.calls[at][0])
		delta, stop = fmt.Sprintf(`{"type":"input_json_delta","partial_json":%s}`, arguments), "tool_use"
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, event := range [][2]string{
		{"message_start", `,"message":{"id":"m","type":"message","role":"assistant","model":"scripted","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}`},
		{"content_block_start", `,"index":0,"content_block":` + block},
		{"content_block_delta", `,"index":0,"delta":` + delta},
		{"content_block_stop", `,"index":0`},
		{"message_delta", `,"delta":{"stop_reason":"` + stop + `","stop_sequence":null},"usage":{"output_tokens":1}`},
		{"message_stop", ""},
	} {
		fmt.Fprintf(w, "event: %[1]s\ndata: {\"type\":%[1]q%[2]s}\n\n", event[0], event[1])
	}
}

// TestClaudeCodeCalls: MCPProxy imports a server of Claude Code, connects Claude Code and writes its rules. Then Claude
// Code follows the rules: a read runs without asking, and a write does not run, because no user can be asked.
func TestClaudeCodeCalls(t *testing.T) {
	t.Parallel()
	const lanes = "mcp__mcpproxy-"
	for surface, calls := range map[string][][2]string{
		"search": {{"mcp__mcpproxy__retrieve_tools", `{"query":"list the notes"}`}, {"mcp__mcpproxy__call_tool_read", `{"name":"notes:list_notes"}`},
			{"mcp__mcpproxy__call_tool_write", `{"name":"notes:write_note","args":{"title":"t","text":"x"}}`}},
		"lanes": {{lanes + "read__notes__list_notes", `{}`}, {lanes + "write__notes__write_note", `{"title":"t","text":"x"}`}},
	} {
		t.Run(surface, func(t *testing.T) {
			t.Parallel()
			claudeCalls(t, surface, calls)
		})
	}
}

// claudeCalls connects Claude Code to one surface and checks the results of the calls: the last but one reads the list
// of notes, and the last one is not permitted.
func claudeCalls(t *testing.T, surface string, calls [][2]string) {
	program := clientProgram(t, "claude")
	d := startDaemon(t, `{}`, noKeyring, inPath(program))
	d.inHome(".claude.json", fmt.Sprintf(`{"mcpServers": {"notes": {"command": %q, "args": ["demo-upstream", "notes"]}}}`, binary))
	for _, step := range []string{
		"upstream import claude-code --yes --remove", "upstream approve notes --yes", "upstream approve notes --yes",
		"connect claude-code --yes --surface " + surface, "permissions claude-code --write --yes", "permissions claude-code --check",
	} {
		if code, out, notes := d.cli(strings.Fields(step)...); code != 0 {
			t.Fatalf("%s: %d\n%s%s", step, code, out, notes)
		}
	}
	model := &scriptedModel{calls: calls}
	service := httptest.NewServer(model)
	defer service.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "-p", "look at my notes")
	cmd.Dir = d.dir
	cmd.Env = d.environ("ANTHROPIC_BASE_URL="+service.URL, "ANTHROPIC_API_KEY=none", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1")
	said, err := cmd.CombinedOutput()
	model.mu.Lock()
	defer model.mu.Unlock()
	if err != nil || len(model.results) != len(model.calls) {
		t.Fatalf("%v, %d results\n%s", err, len(model.results), said)
	}
	last := len(calls) - 1
	for i, want := range map[int]string{last - 1: "groceries", last: calls[last][0]} {
		if !strings.Contains(model.results[i], want) {
			t.Errorf("the result of %v is %s", model.calls[i], model.results[i])
		}
	}
	_, log, _ := d.cli("activity", "list", "--type", "tool_call", "-o", "json")
	if strings.Count(log, `"tool_name": "list_notes"`) != 1 || strings.Contains(log, "write_note") {
		t.Errorf("the log: %s", log)
	}
}
