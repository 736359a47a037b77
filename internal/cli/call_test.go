package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mcpproxy/internal/api"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

func TestCallArguments(t *testing.T) {
	t.Parallel()
	f := &fakeOperations{answer: api.CallAnswer{Result: json.RawMessage(`{"content":[]}`)}}
	w := newEnvWithDaemon(t, f)
	file := filepath.Join(t.TempDir(), "args.json")
	if err := os.WriteFile(file, []byte("{\"from\": \"file\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.stdin = ` {"from":"stdin","n":9007199254740993} `
	for _, c := range []struct {
		args    []string
		variant policy.CallToolVariant
		want    string
	}{
		{[]string{"tool-read", "a:b"}, policy.CallToolRead, ""},
		{[]string{"tool-write", "a:b", "--args", `{"a":"<&>"}`}, policy.CallToolWrite, `{"a":"<&>"}`},
		{[]string{"tool-destructive", "--tool-name", "a:b", "--json_args", `{"b":1.0}`}, policy.CallToolDestructive, `{"b":1.0}`},
		{[]string{"tool-read", "a:b", "--args", "@" + file}, policy.CallToolRead, `{"from":"file"}`},
		{[]string{"tool-read", "a:b", "--args", "-"}, policy.CallToolRead, `{"from":"stdin","n":9007199254740993}`},
		{[]string{"tool-read", "a:b", "--args", "@-"}, policy.CallToolRead, `{"from":"stdin","n":9007199254740993}`},
		{[]string{"tool-read", "a:b", "--args", "[1]"}, policy.CallToolRead, "[1]"},
	} {
		if got := w.runCommand(append([]string{"call"}, c.args...)...); got.code != 0 {
			t.Errorf("%v: %+v", c.args, got)
			continue
		}
		call := f.calls[len(f.calls)-1]
		if call.variant != c.variant || call.Name != "a:b" || string(call.Args) != c.want || call.declared.OperationType != c.variant.Operation().String() {
			t.Errorf("%v: %+v %s", c.args, call, call.Args)
		}
		if call.caller.Source != activity.SourceCLI || call.caller.Actor.String() != "admin" {
			t.Errorf("%v: caller %+v", c.args, call.caller)
		}
	}
	w.runCommand("call", "tool-read", "a:b", "--reason", "why not", "--sensitivity", "secret", "--timeout", "1m")
	call := f.calls[len(f.calls)-1]
	if call.declared.Reason != "why not" || call.declared.DataSensitivity != "secret" || call.timeout != time.Minute {
		t.Errorf("%+v", call)
	}
}

func TestDuplicateArgumentsAreNotSent(t *testing.T) {
	t.Parallel()
	f := &fakeOperations{}
	got := newEnvWithDaemon(t, f).runCommand("call", "tool-read", "a:b", "--args", `{"a":1,"a":2}`)
	if got.code != problem.ExitUsage || len(f.calls) != 0 || !strings.Contains(got.stderr, "duplicate") {
		t.Errorf("%+v, %d calls", got, len(f.calls))
	}
}

// TestOldCallTool checks that the error for the removed command call_tool is the same that a model gets.
func TestOldCallTool(t *testing.T) {
	t.Parallel()
	f := &fakeOperations{}
	w := newEnvWithDaemon(t, f)
	for _, line := range []string{"call tool", "call tool a:b", `call tool a:b --args {"x":1}`, "call tool --tool-name=a:b", "call call_tool a:b", "call_tool a:b", "call-tool a:b --args {}"} {
		got := w.runCommand(strings.Fields(line)...)
		if got.code != problem.ExitUsage || got.stdout != "" || !strings.Contains(got.stderr, policy.CallToolNotFoundText) || !strings.Contains(got.stderr, "`mcpproxy call tool-read`") {
			t.Errorf("%s: %+v", line, got)
		}
	}
	for line, want := range map[string]string{"call tool-raed a:b --args {}": "Did you mean `mcpproxy call tool-read`?", "call --args {}": "unknown flag: --args"} {
		if got := w.runCommand(strings.Fields(line)...); got.code != problem.ExitUsage || !strings.Contains(strings.ToLower(got.stderr), strings.ToLower(want)) {
			t.Errorf("%s: %+v", line, got)
		}
	}
	if len(f.calls) > 0 {
		t.Errorf("%d calls", len(f.calls))
	}
}

func TestContent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ result, want string }{
		"text":       {`{"content":[{"type":"text","text":"hello\nworld\n"},{"type":"text","text":"two"}]}`, "hello\nworld\ntwo\n"},
		"JSON":       {`{"content":[{"type":"text","text":" {\"b\":1.0,\"a\":9007199254740993}"}]}`, "{\n  \"b\": 1.0,\n  \"a\": 9007199254740993\n}\n"},
		"not JSON":   {`{"content":[{"type":"text","text":"{oops"}]}`, "{oops\n"},
		"number":     {`{"content":[{"type":"text","text":"42"}]}`, "42\n"},
		"escapes":    {`{"content":[{"type":"text","text":"\u001b[2Ja\u202eb\u009b31mc\u0007"}]}`, "abc\n"},
		"image":      {`{"content":[{"type":"image","mimeType":"image/png","data":"AAAAAAAA"}]}`, "[image: image/png, 6 bytes]\n"},
		"audio":      {`{"content":[{"type":"audio","data":"` + strings.Repeat("AAAA", 1000) + `"}]}`, "[audio: unknown type, 3.0 kB]\n"},
		"link":       {`{"content":[{"type":"resource_link","uri":"file:///a","name":"A\u001b[1m"}]}`, "A: file:///a\n"},
		"resource":   {`{"content":[{"type":"resource","resource":{"uri":"file:///a","text":"body"}}]}`, "file:///a\nbody\n"},
		"blob":       {`{"content":[{"type":"resource","resource":{"uri":"file:///a","mimeType":"x/y","blob":"AAA="}}]}`, "[resource: file:///a, x/y, 2 bytes]\n"},
		"new kind":   {`{"content":[{"type":"hologram"}]}`, "[hologram]\n"},
		"structured": {`{"content":[],"structuredContent":{"a":1}}`, "{\n  \"a\": 1\n}\n"},
		"nothing":    {`{"content":[]}`, "(no content)\n"},
		"odd":        {`{"content":"text"}`, "{\n  \"content\": \"text\"\n}\n"},
	} {
		w := newEnvWithDaemon(t, &fakeOperations{answer: api.CallAnswer{Result: json.RawMessage(c.result)}})
		if got := w.runCommand("call", "tool-read", "a:b"); got.code != 0 || got.stdout != c.want || got.stderr != "" {
			t.Errorf("%s: %+v", name, got)
		}
		got := w.runCommand("call", "tool-read", "a:b", "-o", "json")
		var a, b any
		if json.Unmarshal([]byte(got.stdout), &a) != nil || json.Unmarshal([]byte(c.result), &b) != nil {
			t.Errorf("%s: -o json gives %s", name, got.stdout)
		}
		if x, y := mustMarshalJSON(a), mustMarshalJSON(b); x != y {
			t.Errorf("%s: -o json gives %s", name, x)
		}
	}
}

func mustMarshalJSON(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

func TestFailureOfTheToolItself(t *testing.T) {
	t.Parallel()
	w := newEnvWithDaemon(t, &fakeOperations{answer: api.CallAnswer{Result: json.RawMessage(`{"content":[{"type":"text","text":"no such note"}],"isError":true}`),
		IsError: true, ActivityID: "01A", Warnings: []string{"careful\x1b[0m"}}})
	got := w.runCommand("call", "tool-read", "notes:get")
	if got.code != problem.ExitFailed || got.stdout != "no such note\n" {
		t.Errorf("%+v", got)
	}
	if want := "Warning: careful\nError: Tool 'notes:get' returned an error.\nHint: See its answer, or `mcpproxy activity show 01A`.\n"; got.stderr != want {
		t.Errorf("stderr = %q", got.stderr)
	}
}

func TestExactMessageOfARefusal(t *testing.T) {
	t.Parallel()
	message := "Tool 'github:delete_repo' is marked destructive by server, use call_tool_destructive instead of call_tool_read"
	w := newEnvWithDaemon(t, &fakeOperations{failure: problem.New(problem.ServerMismatch, message, "")})
	if got := w.runCommand("call", "tool-read", "github:delete_repo"); got.code != problem.ExitRefused || got.stderr != "Error: "+message+"\nHint: Use `mcpproxy call tool-destructive github:delete_repo` with the same arguments.\n" {
		t.Errorf("%+v", got)
	}
}

// If the read lane rejects a call that the write lane allows, the error suggests the write lane.
func TestLaneAtThePrompt(t *testing.T) {
	t.Parallel()
	w := newEnvWithDaemon(t, &fakeOperations{failure: problem.New(problem.ServerMismatch, "no", "for agents").With("call_with", "call_tool_write")})
	if got := w.runCommand("call", "tool-read", "s:t"); got.stderr != "Error: no\nHint: Use `mcpproxy call tool-write s:t` with the same arguments.\n" {
		t.Errorf("%+v", got)
	}
}

// The error of a call to a locked tool names the command that unlocks it. If the configuration locks the tool, the
// error says that no command unlocks it.
func TestLockedAtThePrompt(t *testing.T) {
	t.Parallel()
	blocked := problem.New(problem.ToolLocked, "locked", "for agents").With("status", "pending_approval").With("blocked", true)
	got := newEnvWithDaemon(t, &fakeOperations{failure: blocked}).runCommand("call", "tool-read", "github:a b")
	if got.code != problem.ExitRefused || !strings.Contains(got.stderr, "`mcpproxy tools unblock 'github:a b'`") || strings.Contains(got.stderr, "tools diff") {
		t.Errorf("blocked: %+v", got)
	}
	for status, hint := range map[string]string{
		"server_disabled": "`mcpproxy upstream enable github`", "server_quarantined": "`mcpproxy upstream approve github`",
		"disabled_by_config": "mcpproxy config path", "disabled_by_user": "`mcpproxy tools enable 'github:a b'`",
		"pending_approval": "`mcpproxy tools diff 'github:a b'`", "disabled_unknown": "`mcpproxy upstream logs github`",
	} {
		f := &fakeOperations{failure: problem.New(problem.ToolLocked, "locked", "for agents").With("status", status)}
		got := newEnvWithDaemon(t, f).runCommand("call", "tool-read", "github:a b")
		if got.code != problem.ExitRefused || !strings.Contains(got.stderr, hint) || strings.Contains(got.stderr, "for agents") ||
			status == "disabled_by_config" && strings.Contains(got.stderr, "tools enable") {
			t.Errorf("%s: %+v", status, got)
		}
	}
}

// A tool error is reported in every output format.
func TestFailureOfTheToolInEveryFormat(t *testing.T) {
	t.Parallel()
	w := newEnvWithDaemon(t, &fakeOperations{answer: api.CallAnswer{Result: json.RawMessage(`{"content":[{"type":"text","text":"no such note"}],"isError":true}`), IsError: true, ActivityID: "01A"}})
	for _, format := range []string{"table", "json", "yaml"} {
		got := w.runCommand("call", "tool-read", "notes:get", "-o", format)
		if got.code != problem.ExitFailed || !strings.Contains(got.stdout, "no such note") || !strings.Contains(got.stderr, "returned an error") {
			t.Errorf("-o %s: %+v", format, got)
		}
	}
}
