package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// hinted are the tools of the matrix, one for each relevant combination of the two hints.
var hinted = []struct{ tool, annotations string }{
	{"reads", `{"readOnlyHint":true}`},
	{"plain", ``},
	{"plain_false", `{"readOnlyHint":false,"destructiveHint":false}`},
	{"destroys", `{"destructiveHint":true}`},
	{"both", `{"readOnlyHint":true,"destructiveHint":true}`},
}

// row is one call and its expected outcome.
type row struct {
	variant  string // read, write, destructive
	declared string // none, or the declared operation type
	tool     string
	// The outcome that the contract requires:
	code    string // "" means allowed
	message string
	warns   bool
}

// expected implements section 4 of the contract independently of the product.
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
	case variant == "read" && tool == "plain_false" && strict:
		r.code = "SERVER_MISMATCH"
		r.message = fmt.Sprintf("Tool 'm:%s' is marked as not read-only by server, use call_tool_write instead of %s", tool, called)
	case variant != "destructive" && destroys, variant == "read" && tool == "plain_false":
		r.warns = true
	case variant == "write" && tool == "reads":
		r.warns = true
	}
	return r
}

func TestMatrixThroughEverySurface(t *testing.T) {
	t.Parallel()
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
				m := matrix{t: t, d: d, upstream: upstream, legacy: d.legacy(), modern: d.stateless(), lanes: map[string][]*agent{}}
				for _, lane := range []string{"read", "write", "destructive"} {
					address := "/mcp/all/" + lane
					m.lanes[lane] = []*agent{d.legacyAt(address), {d: d, client: &http.Client{Timeout: patience}, modern: true, path: address}}
				}
				for _, variant := range []string{"read", "write", "destructive"} {
					for _, declared := range []string{"none", "empty", "read", "write", "destructive", "unknown"} {
						for _, h := range hinted {
							m.check(expected(variant, declared, h.tool, strict, require))
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
	lanes          map[string][]*agent // agents on the endpoints of the lanes
}

// check makes the call of one row on every surface that can express it.
func (m *matrix) check(r row) {
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
	// The CLI sets the operation type itself, so that it can only express these rows.
	if r.declared == r.variant {
		m.compare("cli", r, func() outcome { return m.viaCLI(r) })
		for i, at := range m.lanes[r.variant] { // the endpoint declares the operation type too
			there := r
			there.message = strings.ReplaceAll(r.message, "call_tool_", "/mcp/all/")
			m.compare([]string{"lane legacy", "lane modern"}[i], there, func() outcome { return viaTool(m.t, at, "m__"+r.tool, `{"k":1}`) })
		}
	}
}

// outcome is the result that a surface returned.
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
	return viaTool(t, a, "call_tool_"+r.variant, arguments)
}

func viaTool(t *testing.T, a *agent, tool, arguments string) outcome {
	t.Helper()
	result := a.call(tool, arguments)
	if result.rpcError != nil {
		t.Fatalf("protocol error: %+v", result.rpcError)
	}
	if !result.IsError {
		return outcome{warned: result.Meta["mcpproxy/warnings"] != nil}
	}
	p := result.refusal(t)
	if want := p.Message + "\nHint: " + p.Hint; result.text() != want {
		t.Errorf("got the text %q, want message and hint %q", result.text(), want)
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
