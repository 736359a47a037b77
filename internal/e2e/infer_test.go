package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// unhinted maps tools without hints to the inferred lane.
var unhinted = map[string]string{
	"get_page": "read", "create_page": "write", "delete_page": "destructive", "pages.purge": "destructive", "page": "write",
}

// inferredRow returns the expected outcome of a call with inferred hints, written independently of the product.
func inferredRow(mode, variant, tool string) row {
	r := row{variant: variant, declared: variant, tool: tool}
	lane := map[string]int{"read": 1, "write": 2, "destructive": 3}
	inferred := unhinted[tool]
	why := map[string]string{"delete_page": `its name says "delete"`, "pages.purge": `its name says "purge"`,
		"create_page": `its name says "create"`, "page": "nothing says that it only reads"}[tool]
	switch {
	case mode == "enforce" && inferred == "write" && variant == "read":
		r.code = "SERVER_MISMATCH"
		r.message = fmt.Sprintf("Tool 'm:%s' carries no hints and seems to write (%s), use call_tool_write instead of call_tool_read", tool, why)
	case mode == "off" || tool == "page": // nothing is inferred for page: the agent's intent decides
	case mode == "enforce" && inferred == "destructive" && variant != "destructive":
		r.code = "SERVER_MISMATCH"
		r.message = fmt.Sprintf("Tool 'm:%s' carries no hints and seems to be destructive (%s), use call_tool_destructive instead of call_tool_%s", tool, why, variant)
	case lane[variant] < lane[inferred]:
		r.warns = true
	case mode == "enforce" && inferred == "read" && variant == "write":
		r.warns = true
	}
	return r
}

func TestInferredEffectsThroughEverySurface(t *testing.T) {
	t.Parallel()
	var definitions []string
	for name := range unhinted {
		definitions = append(definitions, fmt.Sprintf(`{"name":%q,"description":"A page.","inputSchema":{"type":"object"}}`, name))
	}
	upstream := startUpstream(t, definitions...)
	configured := func(mode string) string {
		return upstream.config("m", fmt.Sprintf(`"intent_declaration":{"infer_hints":%q}`, mode))
	}
	d := startDaemon(t, upstream.config("m", `"tools_limit": 10`)) // advise is the default
	d.awaitTools("m:get_page", "m:page")
	m := matrix{t: t, d: d, upstream: upstream, legacy: d.legacy(), modern: d.stateless()}
	for _, mode := range []string{"advise", "off", "enforce", "advise"} { // each applied while the daemon runs
		t.Run(mode, func(t *testing.T) {
			m.t = t
			d.writeConfig(configured(mode))
			eventually(t, "the mode is applied", func() error { return shownAs(d, mode) })
			for name := range unhinted {
				for _, variant := range []string{"read", "write", "destructive"} {
					m.check(inferredRow(mode, variant, name))
				}
			}
			checkDiscoveryOfEffects(t, m, mode)
		})
	}
	// The warning is recorded.
	_, answer := d.rest("GET", "/activity?tool=delete_page&status=success&limit=100", "")
	if !strings.Contains(string(answer), `carries no hints and seems to be destructive`) {
		t.Errorf("no warning is recorded: %s", answer)
	}
}

// shownAs returns an error unless the daemon shows the tools as the mode requires.
func shownAs(d *daemon, mode string) error {
	_, answer := d.rest("GET", "/servers/m/tools/delete_page", "")
	var v struct {
		CallWith string `json:"call_with"`
		Inferred string `json:"inferred_operation"`
		Reason   string `json:"inferred_reason"`
	}
	if err := json.Unmarshal(answer, &v); err != nil {
		return err
	}
	want := map[string]string{"off": "call_tool_write  ", "advise": `call_tool_write destructive its name says "delete"`,
		"enforce": `call_tool_destructive destructive its name says "delete"`}[mode]
	if got := v.CallWith + " " + v.Inferred + " " + v.Reason; got != want {
		return fmt.Errorf("%s", answer)
	}
	return nil
}

// checkDiscoveryOfEffects compares retrieve_tools and the command line with the inferred hints.
func checkDiscoveryOfEffects(t *testing.T, m matrix, mode string) {
	t.Helper()
	result := m.modern.call("retrieve_tools", `{"query":"page"}`)
	var found struct {
		Tools []struct {
			Name        string
			Annotations json.RawMessage
			CallWith    string `json:"call_with"`
			Inferred    string `json:"inferred_operation"`
		}
	}
	if err := json.Unmarshal([]byte(result.text()), &found); err != nil || len(found.Tools) != len(unhinted) {
		t.Fatalf("%s: %v", result.text(), err)
	}
	for _, f := range found.Tools {
		want := unhinted[strings.TrimPrefix(f.Name, "m:")]
		lane, hints := "call_tool_write", "{}"
		if mode == "enforce" {
			lane = "call_tool_" + want
			hints = map[string]string{"read": `{"readOnlyHint":true}`, "write": `{"readOnlyHint":false,"destructiveHint":false}`,
				"destructive": `{"readOnlyHint":false,"destructiveHint":true}`}[want]
		}
		if mode == "off" {
			want = ""
		}
		if f.Inferred != want || f.CallWith != lane || string(f.Annotations) != hints {
			t.Errorf("%s: inferred %q, %s, %s", f.Name, f.Inferred, f.CallWith, f.Annotations)
		}
	}
	code, stdout, stderr := m.d.cli("tools", "show", "m:create_page")
	if told := strings.Contains(stdout, `write: its name says "create"`); code != 0 || told != (mode != "off") {
		t.Errorf("tools show: exit code %d %s\n%s", code, stderr, stdout)
	}
}
