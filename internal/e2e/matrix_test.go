package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// The tools of the matrix: every combination of the two hints that matters.
var hinted = []struct{ tool, annotations string }{
	{"reads", `{"readOnlyHint":true}`},
	{"plain", ``},
	{"plain_false", `{"readOnlyHint":false,"destructiveHint":false}`},
	{"destroys", `{"destructiveHint":true}`},
	{"both", `{"readOnlyHint":true,"destructiveHint":true}`},
}

// row is one call and what must come of it.
type row struct {
	variant  string // read, write, destructive
	declared string // none, or the declared operation type
	tool     string
	// what the contract says
	code    string // "" = allowed
	message string
	warns   bool
}

// expected is section 4 of the contract, written down once more.
func expected(variant, declared, tool string, strict, require bool) row {
	r := row{variant: variant, declared: declared, tool: tool}
	called := "call_tool_" + variant
	destroys := tool == "destroys" || tool == "both"
	switch {
	case declared == "none" && require:
		r.code, r.message = "MISSING_INTENT", fmt.Sprintf("intent parameter is required for %s", called)
	case declared == "empty" && require:
		r.code, r.message = "MISSING_OPERATION_TYPE", "intent.operation_type is required"
	case declared == "unknown":
		r.code, r.message = "INVALID_OPERATION_TYPE", "Invalid intent.operation_type 'unknown': must be read, write, or destructive"
	case declared != "none" && declared != "empty" && declared != variant:
		r.code, r.message = "INTENT_MISMATCH", fmt.Sprintf("Intent mismatch: tool is %s but intent declares %s", called, declared)
	case variant != "destructive" && destroys && strict:
		r.code = "SERVER_MISMATCH"
		r.message = fmt.Sprintf("Tool 'm:%s' is marked destructive by server, use call_tool_destructive instead of %s", tool, called)
	case variant != "destructive" && destroys:
		r.warns = true
	case variant == "write" && tool == "reads":
		r.warns = true
	}
	return r
}

func TestMatrixThroughEverySurface(t *testing.T) {
	var definitions []string
	for _, h := range hinted {
		d := fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"}`, h.tool)
		if h.annotations != "" {
			d += `,"annotations":` + h.annotations
		}
		definitions = append(definitions, d+"}")
	}
	for _, strict := range []bool{true, false} {
		for _, require := range []bool{true, false} {
			t.Run(fmt.Sprintf("strict=%v,require=%v", strict, require), func(t *testing.T) {
				t.Parallel()
				upstream := startUpstream(t, definitions...)
				d := startDaemon(t, upstream.config("m", fmt.Sprintf(
					`"intent_declaration":{"strict_server_validation":%v,"require_intent":%v}`, strict, require)))
				d.awaitTools("m:both")
				m := matrix{t: t, d: d, upstream: upstream, legacy: d.legacy(), modern: d.stateless()}
				for _, variant := range []string{"read", "write", "destructive"} {
					for _, declared := range []string{"none", "empty", "read", "write", "destructive", "unknown"} {
						for _, h := range hinted {
							m.check(expected(variant, declared, h.tool, strict, require), require)
						}
					}
				}
			})
		}
	}
}

type matrix struct {
	t              *testing.T
	d              *daemon
	upstream       *fakeUpstream
	legacy, modern *agent
}

// check makes the call of one row through every surface that can express it.
func (m *matrix) check(r row, require bool) {
	m.t.Helper()
	intent := map[string]string{"none": "", "empty": `,"intent":{}`}[r.declared]
	if intent == "" && r.declared != "none" {
		intent = fmt.Sprintf(`,"intent":{"operation_type":%q}`, r.declared)
	}
	arguments := fmt.Sprintf(`{"name":"m:%s","args":{"k":1}%s}`, r.tool, intent)
	m.compare("mcp legacy", r, func() outcome { return viaMCP(m.t, m.legacy, r, arguments) })
	m.compare("mcp modern", r, func() outcome { return viaMCP(m.t, m.modern, r, arguments) })
	body := fmt.Sprintf(`{"tool_variant":"call_tool_%s","name":"m:%s","args":{"k":1}%s}`, r.variant, r.tool, intent)
	m.compare("rest", r, func() outcome { return m.viaREST(body) })
	// The command fills in the operation type itself, so it can say this only.
	// A process for each row takes time: the rows that differ are enough.
	if r.declared == r.variant && !require {
		m.compare("cli", r, func() outcome { return m.viaCLI(r) })
	}
}

// outcome is what a surface said.
type outcome struct {
	code, message string
	warned        bool
}

func (m *matrix) compare(surface string, r row, do func() outcome) {
	m.t.Helper()
	before := m.upstream.calls.Load()
	got := do()
	reached := m.upstream.calls.Load() - before
	where := fmt.Sprintf("%s: call_tool_%s, declared %s, tool %s", surface, r.variant, r.declared, r.tool)
	if got.code != r.code || got.message != r.message {
		m.t.Errorf("%s\n got %s %q\nwant %s %q", where, got.code, got.message, r.code, r.message)
	}
	if r.code == "" && got.warned != r.warns && surface != "cli" {
		m.t.Errorf("%s: warned %v, want %v", where, got.warned, r.warns)
	}
	want := int64(0)
	if r.code == "" {
		want = 1
	}
	if reached != want {
		m.t.Errorf("%s: the upstream was called %d times, want %d", where, reached, want)
	}
}

func viaMCP(t *testing.T, a *agent, r row, arguments string) outcome {
	t.Helper()
	result := a.call("call_tool_"+r.variant, arguments)
	if result.rpcError != nil {
		t.Fatalf("a protocol error: %+v", result.rpcError)
	}
	if !result.IsError {
		return outcome{warned: result.Meta["mcpproxy/warnings"] != nil}
	}
	p := result.refusal(t)
	if result.text() != p.Message {
		t.Errorf("the text %q is not the message %q", result.text(), p.Message)
	}
	if p.Hint == "" {
		t.Errorf("%s has no hint", p.Code)
	}
	return outcome{code: p.Code, message: p.Message}
}

func (m *matrix) viaREST(body string) outcome {
	m.t.Helper()
	status, answer := m.d.rest("POST", "/tools/call", body)
	if status == http.StatusOK {
		var ok struct{ Warnings []string }
		if err := json.Unmarshal(answer, &ok); err != nil {
			m.t.Fatal(err)
		}
		return outcome{warned: len(ok.Warnings) > 0}
	}
	var p struct{ Code, Detail string }
	if err := json.Unmarshal(answer, &p); err != nil || status < 400 {
		m.t.Fatalf("status %d: %s", status, answer)
	}
	return outcome{code: p.Code, message: p.Detail}
}

func (m *matrix) viaCLI(r row) outcome {
	m.t.Helper()
	code, _, stderr := m.d.cli("call", "tool-"+r.variant, "m:"+r.tool, "--args", `{"k":1}`, "-o", "json")
	if code == 0 {
		return outcome{}
	}
	var p struct{ Error refusal }
	if err := json.Unmarshal([]byte(stderr), &p); err != nil {
		m.t.Fatalf("exit code %d, stderr %s", code, stderr)
	}
	if code != 3 {
		m.t.Errorf("exit code %d, want 3: %s", code, stderr)
	}
	return outcome{code: p.Error.Code, message: p.Error.Message}
}

func TestRefusalsOfBadInput(t *testing.T) {
	upstream := startUpstream(t, `{"name":"plain","inputSchema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}}`)
	d := startDaemon(t, upstream.config("m", ""))
	d.awaitTools("m:plain")
	a := d.legacy()
	huge := `"` + strings.Repeat("x", 10<<20) + `"`
	reason := strings.Repeat("ä", 1001)
	cases := []struct{ name, arguments, code, message string }{
		{"name without colon", `{"name":"plain","args":{"n":1}}`, "INVALID_NAME", ""},
		{"unknown server", `{"name":"nope:plain","args":{"n":1}}`, "SERVER_NOT_FOUND", ""},
		{"unknown tool", `{"name":"m:plane","args":{"n":1}}`, "TOOL_NOT_FOUND", ""},
		{"args not an object", `{"name":"m:plain","args":[1]}`, "INVALID_ARGS", ""},
		{"args_json not JSON", `{"name":"m:plain","args_json":"{n:1}"}`, "INVALID_ARGS", ""},
		{"args_json not an object", `{"name":"m:plain","args_json":"7"}`, "INVALID_ARGS", ""},
		{"args_json with a duplicate key", `{"name":"m:plain","args_json":"{\"n\":1,\"n\":2}"}`, "INVALID_ARGS", ""},
		{"both forms", `{"name":"m:plain","args":{"n":1},"args_json":"{\"n\":1}"}`, "INVALID_ARGS", ""},
		{"against the schema", `{"name":"m:plain","args":{"n":"one"}}`, "ARGS_MISMATCH", ""},
		{"undeclared argument", `{"name":"m:plain","args":{"n":1,"x":2}}`, "ARGS_MISMATCH", ""},
		{"reason too long", `{"name":"m:plain","args":{"n":1},"intent_reason":"` + reason + `"}`, "REASON_TOO_LONG", "intent.reason exceeds maximum length of 1000 characters"},
		{"unknown sensitivity", `{"name":"m:plain","args":{"n":1},"intent_data_sensitivity":"secret"}`, "INVALID_SENSITIVITY", "Invalid intent.data_sensitivity 'secret': must be public, internal, private, or unknown"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			result := a.call("call_tool_write", c.arguments)
			if !result.IsError {
				t.Fatalf("the call passed: %+v", result)
			}
			p := result.refusal(t)
			if p.Code != c.code || c.message != "" && p.Message != c.message {
				t.Errorf("got %s %q, want %s %q", p.Code, p.Message, c.code, c.message)
			}
			if p.Hint == "" {
				t.Error("there is no hint")
			}
			if c.code == "ARGS_MISMATCH" && !strings.Contains(string(p.Details), "inputSchema") {
				t.Errorf("the schema is not in the details: %s", p.Details)
			}
		})
	}
	t.Run("10 MB of arguments", func(t *testing.T) {
		status, answer, _ := a.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"call_tool_write","arguments":{"name":"m:plain","args":{"n":`+huge+`}}}}`, nil)
		if status != http.StatusRequestEntityTooLarge || !strings.Contains(string(answer), "4") {
			t.Errorf("status %d, %.300s", status, answer)
		}
	})
	t.Run("the old call_tool", func(t *testing.T) {
		r := a.call("call_tool", `{"name":"m:plain"}`)
		const want = "Tool 'call_tool' not found. Use call_tool_read, call_tool_write, or call_tool_destructive with matching intent.operation_type. See retrieve_tools for annotations and recommendations."
		if r.rpcError == nil || r.rpcError.Code != -32602 || r.rpcError.Message != want {
			t.Errorf("got %+v", r.rpcError)
		}
	})
	if n := upstream.calls.Load(); n != 0 {
		t.Errorf("the upstream was called %d times", n)
	}
}
