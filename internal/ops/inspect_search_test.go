package ops

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"mcpproxy/internal/config"
	"mcpproxy/internal/testutil/catalogtest"
)

// A user's search finds the same tools as an agent's search, in the same order, and reports their size.
func TestSearchAgreesWithAgents(t *testing.T) {
	t.Parallel()
	for _, detail := range []config.ToolDetailLevel{config.Full, config.Compact} {
		w := newInspectorWorld(t, func(c *config.Config) {
			c.ToolsDetail, c.Servers[0].DisabledTools = detail, []string{"wipe_*"}
		}, defined("show_note", "Show a note.", reads), defined("list_notes", "List all notes.", reads), defined("add_note", "Write a note.", writes),
			defined("wipe_note", "Wipe a note.", destroys), defined("other", "Something else.", reads))
		raw, err := w.gateway.RetrieveTools(t.Context(), RetrieveRequest{Query: "show a note", IncludeDisabled: true, Caller: catalogtest.AgentCaller})
		agents := w.ParseRetrieveResult(raw, err)
		a, err := w.inspect.SearchTools(context.Background(), catalogtest.AdminCaller, SearchQuery{Query: "show a note", Locked: true, Explain: true})
		if err != nil || a.Total != agents.Total || len(a.Tools) == 0 {
			t.Fatalf("%+v, %v, agents get %+v", a, err, agents)
		}
		var got, want []string
		tokens := 0
		for _, v := range a.Tools {
			got = append(got, v.Name)
			tokens += v.Tokens
			if len(v.Why) == 0 || v.Remedy != "" {
				t.Errorf("%+v", v)
			}
		}
		for _, v := range agents.Tools {
			want = append(want, v.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q, agents get %q", got, want)
		}
		// In an agent's answer, the tools are separated by commas.
		var answer struct{ Tools json.RawMessage }
		if err := json.Unmarshal(raw, &answer); err != nil {
			t.Fatal(err)
		}
		if most := len(answer.Tools)/4 + len(a.Tools); tokens != a.Tokens || tokens > most || tokens < len(answer.Tools)/4-len(a.Tools) {
			t.Errorf("%d tokens of the tools, %d in total, for %d bytes", tokens, a.Tokens, len(answer.Tools))
		}
		if want := estimateTokens(w.Catalog.Current().TotalDefinitionSize()); a.AllTokens != want || a.TookMS < 0 || a.TookMS > 10_000 {
			t.Errorf("%d tokens of all, want %d; %v ms", a.AllTokens, want, a.TookMS)
		}
		if len(a.Locked) != 1 || a.Locked[0].Tool != "wipe_note" || a.Locked[0].Status != "disabled_by_config" ||
			a.Locked[0].Remedy != agents.Remediation["disabled_by_config"] || a.Locked[0].Remedy == "" {
			t.Errorf("locked: %+v, agents get %v", a.Locked, agents.Remediation)
		}
		if plain, err := w.inspect.SearchTools(context.Background(), catalogtest.AdminCaller, SearchQuery{Query: "wipe"}); err != nil || len(plain.Locked) != 0 || plain.Locked == nil {
			t.Errorf("locked tools without include_disabled: %+v, %v", plain.Locked, err)
		}
		// Users see tools of a quarantined server, which agents do not see.
		w.Reload(func(c *config.Config) { c.Servers[0].Quarantined = true })
		if a, err := w.inspect.SearchTools(context.Background(), catalogtest.AdminCaller, SearchQuery{Query: "note", Locked: true}); err != nil || len(a.Tools) != 0 || len(a.Locked) < 4 {
			t.Errorf("of a quarantined server: %+v, %v", a, err)
		}
	}
}
