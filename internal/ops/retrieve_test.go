package ops

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/testutil/catalogtest"
	"mcpproxy/internal/testutil/volume"
	"mcpproxy/internal/upstream"
)

// answer returns the answer of retrieve_tools to the agent. The test fails if the answer is not valid JSON or exceeds
// the limit.
func (w *world) answer(r RetrieveRequest) (catalogtest.RetrieveResult, []byte) {
	w.T.Helper()
	r.Caller = anAgent
	raw, err := w.gateway.RetrieveTools(context.Background(), r)
	a := w.ParseRetrieveResult(raw, err)
	if limit := w.Config().DiscoveryLimit; len(raw) > limit {
		w.T.Errorf("%.30q, limit %d: %d bytes of %d", r.Query, r.Limit, len(raw), limit)
	}
	return a, raw
}

// schemaOf returns a schema of size bytes with one parameter.
func schemaOf(size int) string {
	const front, back = `{"type":"object","properties":{"a":{"type":"string","description":"`, `"}},"required":["a"]}`
	return front + strings.Repeat("x", size-len(front)-len(back)) + back
}

// withServers adds servers with these names.
func withServers(c *config.Config, names ...string) {
	for _, name := range names {
		c.Servers = append(c.Servers, config.Server{Name: name, Protocol: "stdio", Launch: config.Launch{Command: name}, Enabled: true, Trust: config.TrustAuto})
	}
}

// For any number and size of tools, a result does not exceed its limit and lists the requested number of tools.
func TestSearchResultsAreLimited(t *testing.T) {
	volume.SkipUnderRace(t)
	w := newWorld(t, nil)
	large := json.RawMessage(schemaOf(40_000))
	tools := make([]*tool.Definition, volume.FullOrQuick(10_000, 1_000))
	for i := range tools {
		name := "get_thing_" + strconv.Itoa(i)
		tools[i] = &tool.Definition{ID: tool.ID{Server: "s", Tool: name}, Raw: json.RawMessage(`{"name":"` + name + `"}`),
			Description: "Gets thing " + strconv.Itoa(i) + strings.Repeat(", and more about it", i%200), InputSchema: large}
	}
	w.Catalog.ToolsListed("s", tools)
	w.Catalog.Publish()
	for _, size := range []int{2000, 10_000, 40_000, 1 << 20} {
		w.Reload(func(c *config.Config) { c.DiscoveryLimit = size })
		for _, limit := range []int{1, 10, 100} {
			for _, detail := range []config.ToolDetailLevel{config.Full, config.Compact} {
				a, raw := w.answer(RetrieveRequest{Query: "get thing", Limit: limit, Detail: detail})
				if a.Total != len(tools) || size >= 40_000 && len(a.Tools) != limit || len(a.Tools) == 0 {
					t.Errorf("limit %d, %d bytes: %d tools of %d", limit, size, len(a.Tools), a.Total)
				}
				whole := 0
				for _, found := range a.Tools {
					if found.Signature == "" {
						whole++
					}
				}
				if room := size / 42_000; detail == config.Compact && whole > 0 || detail == config.Full && whole < min(limit, room*3/4) {
					t.Errorf("limit %d, %d bytes, %s: %d tools are complete", limit, size, detail, whole)
				}
				if size == 40_000 && limit == 100 && len(raw) < size*9/10 {
					t.Errorf("only %d bytes of %d are used", len(raw), size)
				}
			}
		}
	}
}

// The best matches have full schemas. Starting with the first one that does not fit, matches have signatures instead,
// and the result explains how to get their schemas.
func TestBestMatchesKeepTheirSchemas(t *testing.T) {
	var definitions []string
	for i := range 10 {
		definitions = append(definitions, fmt.Sprintf(`{"name":"get_%d","description":"Gets the thing.","inputSchema":%s}`, i, schemaOf(5000)))
	}
	definitions = append(definitions, `{"name":"thing","description":"Gets the thing.","inputSchema":`+schemaOf(100_000)+`}`)
	w := newWorld(t, func(c *config.Config) { c.DiscoveryLimit = 20_000 }, definitions...)
	a, _ := w.answer(RetrieveRequest{Query: "thing", Limit: 11, Detail: config.Full})
	var whole []int
	for i, found := range a.Tools {
		if (found.Signature == "") == (found.InputSchema == nil) {
			t.Errorf("%s has both a schema and a signature, or neither", found.Name)
		}
		if found.InputSchema != nil {
			whole = append(whole, i)
		}
	}
	// The first match is larger than any answer. The others must still have their schemas.
	if len(a.Tools) != 11 || a.Tools[0].Name != "s:thing" || a.Tools[0].Signature != "thing(a: string)" || !slices.Equal(whole, []int{1, 2, 3}) {
		t.Errorf("%d tools, complete are %v, the first is %s %s", len(a.Tools), whole, a.Tools[0].Name, a.Tools[0].Signature)
	}
	if a.Notice != truncatedNotice {
		t.Errorf("the notice is %q", a.Notice)
	}
	last := a.Tools[10].Name
	if a, _ := w.answer(RetrieveRequest{Query: last, Limit: 1}); len(a.Tools) != 1 || a.Tools[0].Name != last || a.Tools[0].InputSchema == nil || a.Notice != "" {
		t.Errorf("search for %s: %+v", last, a)
	}
	if a, _ := w.answer(RetrieveRequest{Query: "s:thing", Limit: 1}); a.Notice != oversizedNotice || a.Tools[0].Signature == "" {
		t.Errorf("a tool that never fits: %+v", a)
	}
	w.Reload(func(c *config.Config) { c.DiscoveryLimit = 1 << 20 })
	if a, _ := w.answer(RetrieveRequest{Query: "thing", Limit: 11, Detail: config.Full}); a.Notice != "" || slices.ContainsFunc(a.Tools, func(f catalogtest.RetrievedTool) bool {
		return f.InputSchema == nil
	}) {
		t.Errorf("with room for all: %q", a.Notice)
	}
}

// By default, three matches have full schemas. The others have a short description and a signature.
func TestBestThreeAreComplete(t *testing.T) {
	var definitions []string
	long := strings.Repeat("It says more. ", 50)
	for i := range 5 {
		definitions = append(definitions, fmt.Sprintf(`{"name":"get_%d","description":"Gets the thing. %s","inputSchema":{"type":"object","properties":{"must":{"type":"string"}%s},"required":["must"]}}`,
			i, long, strings.Repeat(`,"option_`+strings.Repeat("x", 40)+`":{"type":"string"}`, 1)))
	}
	w := newWorld(t, nil, definitions...)
	whole := map[config.ToolDetailLevel]int{config.Auto: 3, config.Full: 5, config.Compact: 0, "": 3}
	for detail, want := range whole {
		a, _ := w.answer(RetrieveRequest{Query: "thing", Detail: detail})
		if len(a.Tools) != 5 || a.Notice != "" {
			t.Fatalf("%s: %+v", detail, a)
		}
		for i, found := range a.Tools {
			if (found.InputSchema != nil) != (i < want) || (found.Signature != "") != (i >= want) {
				t.Errorf("%q: number %d: %+v", detail, i+1, found)
			}
			if cut := strings.HasSuffix(found.Description, ellipsis); cut != (want == 3 && i >= want) {
				t.Errorf("%q: number %d: description cut: %t", detail, i+1, cut)
			}
			if found.Signature != "" && !strings.Contains(found.Signature, "must: string") {
				t.Errorf("%q: %s", detail, found.Signature)
			}
		}
	}
}

// A client gets the usage instructions only once.
func TestInstructionsAreSentOnce(t *testing.T) {
	w := newWorld(t, nil, readsNote)
	told := false
	for i := range 3 {
		a, _ := w.answer(RetrieveRequest{Query: "note", UsageSeen: func(string) (before bool) { before, told = told, true; return before }})
		if (a.Usage == "") != (i > 0) {
			t.Errorf("answer %d: %q", i+1, a.Usage)
		}
	}
}

// No text of a server or a client, however large, makes a result larger than its limit.
func TestHostileSearchResultsAreLimited(t *testing.T) {
	volume.SkipUnderRace(t)
	size := volume.FullOrQuick(90_000, 18_000)
	quotes := strings.Repeat(`\"`, size)
	var names, open, denied []string
	for i := range 100 {
		names = append(names, fmt.Sprintf("away-%02d-%s", i, strings.Repeat("a", 56)))
		name := strings.Repeat(`\u0001`, 240) + strconv.Itoa(i)
		open = append(open, fmt.Sprintf(`{"name":"open %s","description":"thing %s","inputSchema":%s}`, name, quotes[:2*(i+1)*size/100], schemaOf(500*(i+1))))
		denied = append(denied, fmt.Sprintf(`{"name":"denied %s","description":"thing %s"}`, name, quotes))
	}
	w := newWorld(t, func(c *config.Config) {
		c.Servers[0].DisabledTools = []string{"denied*"}
		c.Intent.RequireIntent = true
		withServers(c, names...)
	}, append(open, denied...)...)
	for _, size := range []int{2000, 40_000} {
		w.Reload(func(c *config.Config) { c.DiscoveryLimit = size })
		for _, query := range []string{"", "thing", "away thing", "zzzz", strings.Repeat("\x01", 20_000), strings.Repeat("\" ", 5000) + "thing", "denied"} {
			for _, limit := range []int{1, 10, 100} {
				for _, operation := range []policy.Operation{policy.NoOperation, policy.Read} {
					for _, disabled := range []bool{false, true} {
						for _, detail := range []config.ToolDetailLevel{config.Full, config.Compact} {
							w.answer(RetrieveRequest{Query: query, Limit: limit, Operation: operation, IncludeDisabled: disabled, Detail: detail})
						}
					}
				}
			}
		}
	}
	a, _ := w.answer(RetrieveRequest{Query: "thing", IncludeDisabled: true})
	if len(a.Tools) != 10 || len(a.Disabled) == 0 || len(a.Remediation) != 1 {
		t.Errorf("%d tools, %d disabled, %v", len(a.Tools), len(a.Disabled), a.Remediation)
	}
	w.SetTools(open[0], `{"name":"denied","description":"thing, complete"}`, `{"name":"denied 2","description":"thing `+quotes+`"}`)
	a, _ = w.answer(RetrieveRequest{Query: "thing", IncludeDisabled: true})
	if len(a.Disabled) != 2 || a.Disabled[1].Description != "thing, complete" || !strings.HasPrefix(a.Disabled[0].Description, "thing \"") || !strings.HasSuffix(a.Disabled[0].Description, "…") {
		t.Errorf("disabled: %.200v", a.Disabled)
	}
}

const (
	silentWipe = `{"name":"wipe_note","description":"Deletes a note."}`
	silentGet  = `{"name":"get_note","description":"Gets a note."}`
	silentNote = `{"name":"note","description":"Works on a note."}`
	readsNote  = `{"name":"show_note","description":"Shows a note.","annotations":{"readOnlyHint":true}}`
)

// operation_type filters tools by call_with, and tools without hints also by the inferred operation. The result
// contains the number of tools without hints that were left out.
func TestOperationType(t *testing.T) {
	for _, c := range []struct {
		infer     policy.InferMode
		operation policy.Operation
		want      string
		mute      string
	}{
		{policy.InferAdvise, policy.Read, "get_note show_note", "they have no hints: 2. "},
		{policy.InferAdvise, policy.Write, "get_note note wipe_note", ""},
		{policy.InferAdvise, policy.Destructive, "wipe_note", "they have no hints: 2. "},
		{policy.InferOff, policy.Read, "show_note", "they have no hints: 3. "},
		{policy.InferOff, policy.Destructive, "", "they have no hints: 3. "},
		{policy.InferEnforce, policy.Read, "get_note show_note", ""},
		{policy.InferEnforce, policy.Write, "note", ""},
	} {
		w := newWorld(t, func(cfg *config.Config) { cfg.Intent.InferHints = c.infer }, silentWipe, silentGet, silentNote, readsNote)
		a, _ := w.answer(RetrieveRequest{Query: "note", Operation: c.operation})
		var names []string
		for _, f := range a.Tools {
			names = append(names, strings.TrimPrefix(f.Name, "s:"))
		}
		slices.Sort(names)
		if got := strings.Join(names, " "); got != c.want || c.mute == "" && a.Notice != "" || !strings.Contains(a.Notice, c.mute) {
			t.Errorf("%s, %s: %q, %q", c.infer, c.operation, got, a.Notice)
		}
		if people := w.gateway.SearchTools(&RetrieveRequest{Query: "note", Operation: c.operation, Caller: aPerson}); people.Total != a.Total {
			t.Errorf("%s, %s: users find %d", c.infer, c.operation, people.Total)
		}
	}
}

// If the inferred operation differs from call_with, the result contains advice.
func TestGuessesAreExplained(t *testing.T) {
	w := newWorld(t, nil, silentWipe, silentGet, silentNote, readsNote)
	a, _ := w.answer(RetrieveRequest{Query: "note"})
	for _, f := range a.Tools {
		want := map[string]string{"s:wipe_note": "call_tool_destructive", "s:get_note": "a guess"}[f.Name]
		if (f.Note == "") != (want == "") || !strings.Contains(f.Note, want) || want != "" && (f.CallWith != "call_tool_write" || strings.Contains(f.Note, "call_tool_read")) {
			t.Errorf("%s, %s, %s: %q", f.Name, f.CallWith, f.Inferred, f.Note)
		}
	}
}

// Deprecated tools are listed after their successors and are marked, even if they have only a signature.
func TestDeprecatedToolsAreMarked(t *testing.T) {
	w := newWorld(t, nil, `{"name":"show","description":"Shows a note. DEPRECATED: use show_note instead."}`, readsNote,
		`{"name":"print_note","description":"Prints a note.","_meta":{"deprecated":true}}`)
	for _, detail := range []config.ToolDetailLevel{config.Full, config.Compact} {
		a, _ := w.answer(RetrieveRequest{Query: "show", Detail: detail})
		for i, f := range a.Tools {
			if f.Deprecated != (f.Name != "s:show_note") || (i == 0) == f.Deprecated {
				t.Errorf("%s is number %d, deprecated: %v", f.Name, i+1, f.Deprecated)
			}
		}
	}
}

func TestUsageInstructions(t *testing.T) {
	for _, require := range []bool{false, true} {
		for _, definition := range []string{readsNote, silentNote} {
			w := newWorld(t, func(c *config.Config) { c.Intent.RequireIntent = require }, definition)
			a, _ := w.answer(RetrieveRequest{Query: "note"})
			if len(a.Usage) > 300 || strings.Contains(a.Usage, "inferred_operation") != (definition == silentNote) ||
				strings.Contains(a.Usage, "intent.operation_type is required") != require || !strings.Contains(a.Usage, "must match") {
				t.Errorf("%d bytes: %s", len(a.Usage), a.Usage)
			}
		}
	}
}

// If a search finds nothing, the result contains suggestions.
func TestAdviceWithoutMatches(t *testing.T) {
	none := newWorld(t, func(c *config.Config) { c.Servers = nil })
	if a, _ := none.answer(RetrieveRequest{Query: "note"}); !strings.Contains(a.Notice, "no server") ||
		!strings.Contains(a.Notice, "`mcpproxy upstream add NAME") || !strings.Contains(a.Notice, "upstream_servers") {
		t.Errorf("without a server: %q", a.Notice)
	}
	none.Reload(func(c *config.Config) { c.MCPManagement = config.ManageRead })
	if a, _ := none.answer(RetrieveRequest{}); strings.Contains(a.Notice, "upstream_servers") {
		t.Errorf("where agents may not propose: %q", a.Notice)
	}
	w := newWorld(t, func(c *config.Config) { withServers(c, "wiki", "empty") }, readsTool)
	w.SetToolsOn("wiki", readsNote)
	for query, want := range map[string]string{"": "The query is empty", " \n": "The query is empty", "zzzz": "Nothing matches"} {
		a, _ := w.answer(RetrieveRequest{Query: query})
		if a.Total != 0 || !strings.HasPrefix(a.Notice, want) || !strings.HasSuffix(a.Notice, "The name of a server lists its tools: s, wiki.") {
			t.Errorf("%q: %q", query, a.Notice)
		}
	}
	if a, _ := w.answer(RetrieveRequest{Query: "read a thing"}); a.Notice != "" {
		t.Errorf("with a match: %q", a.Notice)
	}
	if a, _ := w.answer(RetrieveRequest{Query: "Wiki"}); a.Total != 1 || a.Tools[0].Name != "wiki:show_note" {
		t.Errorf("the name of a server: %+v", a)
	}
}

// The result names unconnected servers that may have matching tools, but none outside the agent's scope.
func TestNotConnected(t *testing.T) {
	w := newWorld(t, func(c *config.Config) {
		withServers(c, "github-prod", "wiki", "fresh", "resting", "off", "held", "lazy")
		c.Servers[5].Enabled = false
		c.Servers[6].Quarantined = true
	}, readsTool)
	w.SetToolsOn("wiki", readsNote)
	w.SetToolsOn("resting", `{"name":"sleep","description":"Sleeps over a note."}`)
	for name, phase := range map[string]upstream.Phase{"github-prod": upstream.Failed, "wiki": upstream.Connecting, "resting": upstream.Idle, "lazy": upstream.Idle} {
		w.Catalog.StateChanged(upstream.State{Name: name, Phase: phase, LastError: "CANARY"})
	}
	w.Catalog.Publish()
	for query, want := range map[string]string{
		"thing":                "",
		"a GitHub thing":       "github-prod failed",
		"note":                 "wiki connecting",
		"zzzz":                 "fresh stopped, github-prod failed, lazy idle, wiki connecting",
		"":                     "fresh stopped, github-prod failed, lazy idle, wiki connecting",
		"thing held off, lazy": "lazy idle",
	} {
		a, raw := w.answer(RetrieveRequest{Query: query})
		var got []string
		for _, s := range a.Away {
			got = append(got, s.Server+" "+s.State)
		}
		if strings.Join(got, ", ") != want || strings.Contains(string(raw), "CANARY") {
			t.Errorf("%q: %q in %s", query, got, raw)
		}
	}
	raw, err := w.gateway.RetrieveTools(context.Background(), RetrieveRequest{Query: "zzzz", Caller: Caller{Actor: auth.Actor{}}})
	if a := w.ParseRetrieveResult(raw, err); len(a.Away) != 0 || strings.Contains(a.Notice, "wiki") {
		t.Errorf("a caller without access sees %+v, %q", a.Away, a.Notice)
	}
}
