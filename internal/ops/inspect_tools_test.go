package ops

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config"
	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/testutil/catalogtest"
)

func inspectNames(l ToolList) string {
	var all []string
	for _, r := range l.Tools {
		all = append(all, r.Tool)
	}
	return strings.Join(all, " ")
}

func TestToolFilters(t *testing.T) {
	t.Parallel()
	w := newInspectorWorld(t, func(c *config.Config) { c.Servers[0].DisabledTools = []string{"wipe"} },
		defined("wipe", "Wipe a thing.", destroys), defined("Show", "Show a thing.", reads), `{"name":"touch","title":"Touch a DISK"}`)
	for _, c := range []struct {
		filter ToolFilter
		want   string
	}{
		{ToolFilter{}, "wipe Show touch"},
		{ToolFilter{Server: "s"}, "wipe Show touch"},
		{ToolFilter{Server: "other"}, ""},
		{ToolFilter{Operation: "read"}, "Show"},
		{ToolFilter{CallWith: "call_tool_destructive"}, "wipe"},
		{ToolFilter{CallWith: "call_tool_read", Operation: "read"}, "Show"},
		{ToolFilter{CallWith: "call_tool_read", Operation: "write"}, ""}, // no tool has two operations
		// The filter accepts the status callable, although callable tools have no status.
		{ToolFilter{Status: "callable"}, "Show touch"},
		{ToolFilter{Status: "disabled_by_config"}, "wipe"},
		{ToolFilter{Text: "sHo"}, "Show"},
		{ToolFilter{Text: "disk"}, "touch"},
		{ToolFilter{Text: "s:w"}, "wipe"},
		{ToolFilter{Text: "thing"}, ""}, // only descriptions contain this word
		{ToolFilter{Sort: "name"}, "Show touch wipe"},
	} {
		if l := w.tools(ToolQuery{ToolFilter: c.filter}); inspectNames(l) != c.want || l.Total != len(l.Tools) {
			t.Errorf("%+v: %q of %d, want %q", c.filter, inspectNames(l), l.Total, c.want)
		}
	}
}

// The slim list contains the columns of a table. The full list contains the same fields as the view of one tool.
func TestSlimAndFull(t *testing.T) {
	t.Parallel()
	w := newInspectorWorld(t, nil, defined("show", "Show a thing.\nAnd more.", reads), defined("long", strings.Repeat("ä", 300), writes), `{"name":"get_it","description":""}`)
	w.called("s", "long", 3, activity.Success, 0)
	w.clock.Advance(2 * time.Hour)
	last := w.clock.Now()
	w.called("s", "show", 2, activity.Failed, 0)
	slim := w.tools(ToolQuery{})
	show, long, get := slim.Tools[0], slim.Tools[1], slim.Tools[2]
	if show.Summary != "Show a thing." || show.FullToolFields != nil || show.Lane != "read" || show.Guessed || show.Calls != 2 || show.LastUsed == nil || show.LastUsed.Sub(last).Abs() > time.Second {
		t.Errorf("%+v", show)
	}
	if want := len(defined("show", "Show a thing.\nAnd more.", reads)); show.Tokens != (want+3)/4 {
		t.Errorf("%d tokens of %d bytes", show.Tokens, want)
	}
	if len(long.Summary) > maxSummary+3 || !strings.HasSuffix(long.Summary, "ä…") || long.Calls != 3 {
		t.Errorf("%+v", long)
	}
	if !get.Guessed || get.Lane != "write" || get.Calls != 0 || get.LastUsed != nil {
		t.Errorf("%+v", get)
	}
	for sort, want := range map[string]string{"calls": "long show get_it", "last": "show long get_it", "name": "get_it long show", "tokens": "long show get_it"} {
		turned := strings.Fields(want)
		slices.Reverse(turned)
		for reverse, want := range map[bool]string{false: want, true: strings.Join(turned, " ")} {
			if got := inspectNames(w.tools(ToolQuery{ToolFilter: ToolFilter{Sort: sort, Reverse: reverse}})); got != want {
				t.Errorf("by %s, reverse %v: %q, want %q", sort, reverse, got, want)
			}
		}
	}
	for _, r := range w.tools(ToolQuery{Detail: Full}).Tools {
		one, err := w.gateway.Tool(t.Context(), Caller{}, ToolRef{Server: r.Server, Tool: r.Tool})
		if err != nil || !reflect.DeepEqual(r.ToToolView(), one) {
			t.Errorf("%+v\n%+v, %v", r.ToToolView(), one, err)
		}
	}
}

// The filters by source of the hints and by time of the last use are independent.
func TestHintsAndUse(t *testing.T) {
	t.Parallel()
	w := newInspectorWorld(t, func(c *config.Config) {
		c.Servers[0].HintOverrides = []config.HintOverride{{Pattern: "wipe*", Hints: tool.Hints{Destructive: tool.True}}, {Pattern: "web", Hints: tool.Hints{OpenWorld: tool.True}}}
	}, defined("show", "Show.", reads), defined("wipe_it", "Wipe.", reads), defined("touch", "Touch.", ""), defined("web", "Ask.", ""))
	now := w.clock.Now()
	w.clock.Set(now.Add(-40 * 24 * time.Hour))
	w.called("s", "show", 2, activity.Success, 0)
	w.clock.Set(now)
	w.called("s", "touch", 1, activity.Success, 0)
	for _, c := range []struct {
		filter ToolFilter
		want   string
	}{
		{ToolFilter{Hints: "said"}, "show"},
		{ToolFilter{Hints: "corrected"}, "wipe_it"},
		{ToolFilter{Hints: "guessed"}, "touch web"}, // openWorldHint does not describe the effect
		{ToolFilter{Use: "recent"}, "touch"},
		{ToolFilter{Use: "earlier"}, "show"},
		{ToolFilter{Use: "never"}, "wipe_it web"},
		{ToolFilter{Use: "never", Hints: "guessed"}, "web"},
	} {
		if l := w.tools(ToolQuery{ToolFilter: c.filter}); inspectNames(l) != c.want {
			t.Errorf("%+v: %q, want %q", c.filter, inspectNames(l), c.want)
		}
	}
}

// The view of one tool contains the signature that agents get.
func TestOneTool(t *testing.T) {
	t.Parallel()
	w := newInspectorWorld(t, func(c *config.Config) {
		c.Servers[0].HintOverrides = []config.HintOverride{{Pattern: "show_note", Hints: tool.Hints{ReadOnly: tool.False}}}
	}, `{"name":"show_note","description":"Show a note.","inputSchema":{"type":"object","properties":{"id":{"type":"integer"},"as":{"enum":["text","html"]}},"required":["id"]},"annotations":{`+reads+`}}`)
	w.called("s", "show_note", 2, activity.Success, 0)
	d, err := w.inspect.Tool(t.Context(), Caller{}, ToolRef{Server: "s", Tool: "show_note"})
	if err != nil || d.Calls != 2 || d.LastUsed == nil || d.Lane != "write" && d.Lane != "destructive" || string(d.Corrected) != `{"readOnlyHint":false}` || string(d.DeclaredAnnotations) != `{"readOnlyHint":true}` {
		t.Errorf("%+v, %s, %v", d, d.Corrected, err)
	}
	for detail, tokens := range map[config.ToolDetailLevel]int{config.Full: d.Tokens, config.Compact: d.CompactTokens} {
		raw, err := w.gateway.RetrieveTools(t.Context(), RetrieveRequest{Query: "show a note", Detail: detail, Caller: catalogtest.AgentCaller})
		var answer struct {
			Tools []struct{ Signature string }
		}
		if err != nil || json.Unmarshal(raw, &answer) != nil || len(answer.Tools) != 1 {
			t.Fatalf("%s, %v", raw, err)
		}
		if s := answer.Tools[0].Signature; detail == config.Compact && s != d.Signature {
			t.Errorf("signature %q, an agent gets %q", d.Signature, s)
		}
		a, err := w.inspect.SearchTools(t.Context(), catalogtest.AdminCaller, SearchQuery{Query: "show a note"})
		if found := a.Tools[0]; err != nil || found.Calls != 2 || detail == w.Config().ToolsDetail && tokens-found.Tokens > 5 {
			t.Errorf("%s: %d tokens, a search reports %+v, %v", detail, tokens, found, err)
		}
	}
	if d.CompactTokens >= d.Tokens {
		t.Errorf("compact %d of %d", d.CompactTokens, d.Tokens)
	}
	if _, err := w.inspect.Tool(t.Context(), Caller{}, ToolRef{Server: "s", Tool: "show_notes"}); err == nil {
		t.Error("got a tool that does not exist")
	}
}

// many returns a test environment with servers that have tools of all kinds.
func many(t testing.TB, servers, each int) *inspectorWorld {
	w := newInspectorWorld(t, func(c *config.Config) {
		c.Servers = nil
		for n := range servers {
			c.Servers = append(c.Servers, config.Server{Name: fmt.Sprint("s", n), Protocol: "stdio", Enabled: n%4 != 3, Trust: config.TrustAuto, DisabledTools: []string{"*-off"}})
		}
	})
	for n := range servers {
		w.SetToolsOn(fmt.Sprint("s", n), kinds(each, 0)...)
	}
	return w
}

func kinds(n, from int) (all []string) {
	for i := range n {
		name := fmt.Sprint("tool-", from+i)
		if i%5 == 4 {
			name += "-off"
		}
		all = append(all, defined(name, fmt.Sprint("Do thing ", i, ". ", strings.Repeat("It does more. ", 20)), []string{reads, writes, destroys, ""}[i%4]))
	}
	return all
}

func sum(counts map[string]int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}

// Each facet counts the tools for every value of its own filter. The sum is the number of tools without that filter.
func TestFacetCounts(t *testing.T) {
	t.Parallel()
	w := many(t, 5, 23)
	w.Reload(func(c *config.Config) {
		c.Servers[1].HintOverrides = []config.HintOverride{{Pattern: "tool-1*", Hints: tool.Hints{ReadOnly: tool.True}}}
	})
	for n := range 7 {
		w.called("s0", fmt.Sprint("tool-", n), 1, activity.Success, 0)
	}
	rng := rand.New(rand.NewPCG(3, 4))
	pick := func(words ...string) string { return words[rng.IntN(len(words))] }
	for range 200 {
		f := ToolFilter{Server: pick("", "", "s0", "s3", "none"), Operation: pick("", "", "read", "write"), CallWith: pick("", "", "", "call_tool_read"),
			Status: pick("", "", "callable", "disabled_by_config", "server_disabled"), Text: pick("", "", "OFF", "tool-1"),
			Hints: pick("", "", "said", "corrected", "guessed"), Use: pick("", "", "recent", "never"), Sort: pick("", "name")}
		l := w.tools(ToolQuery{ToolFilter: f, Limit: 1000})
		for _, facet := range []struct {
			counts map[string]int
			choose func(f *ToolFilter, word string)
		}{
			{l.Facets.Lane, func(f *ToolFilter, word string) { f.Operation, f.CallWith = word, "" }},
			{l.Facets.Status, func(f *ToolFilter, word string) { f.Status = word }},
			{l.Facets.Hints, func(f *ToolFilter, word string) { f.Hints = word }},
			{l.Facets.Use, func(f *ToolFilter, word string) { f.Use = word }},
			{l.Facets.Server, func(f *ToolFilter, word string) { f.Server = word }},
		} {
			without := f
			if facet.choose(&without, ""); sum(facet.counts) != w.tools(ToolQuery{ToolFilter: without}).Total {
				t.Fatalf("%+v: %v do not add up to %d", f, facet.counts, w.tools(ToolQuery{ToolFilter: without}).Total)
			}
			for word, n := range facet.counts {
				one := f
				if facet.choose(&one, word); w.tools(ToolQuery{ToolFilter: one}).Total != n || n == 0 {
					t.Fatalf("%+v: counted %d tools for %s, want %d", f, n, word, w.tools(ToolQuery{ToolFilter: one}).Total)
				}
			}
		}
	}
}

// The pages of one list contain each tool once, even if the catalog and the log change in between.
func TestPagesFitTogether(t *testing.T) {
	t.Parallel()
	w := many(t, 4, 30)
	rng := rand.New(rand.NewPCG(5, 6))
	for round := range 40 {
		f := ToolFilter{Sort: []string{"", "name", "calls", "last", "tokens"}[round%5], Reverse: round%3 == 0, Status: []string{"", "callable"}[round/5%2]}
		q := ToolQuery{ToolFilter: f, Limit: 1 + rng.IntN(50)}
		var want, got []string
		for _, r := range w.tools(ToolQuery{ToolFilter: f, Limit: 1000}).Tools {
			want = append(want, r.Name)
		}
		for {
			page := w.tools(q)
			if page.Total != len(want) || sum(page.Facets.Server) != len(want) || (page.Snapshot == "") != (len(want) <= q.Limit) {
				t.Fatalf("%+v: %d tools, %+v, want %d", q, page.Total, page.Facets, len(want))
			}
			for _, r := range page.Tools {
				got = append(got, r.Name)
			}
			if len(page.Tools) < q.Limit {
				break
			}
			q.Offset, q.Snapshot = len(got), page.Snapshot
			server := fmt.Sprint("s", rng.IntN(4))
			w.SetToolsOn(server, kinds(10+rng.IntN(40), rng.IntN(30))...)
			w.called(server, fmt.Sprint("tool-", rng.IntN(30)), 1, activity.Success, 0)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%+v: pages have\n%q\nthe list\n%q", q, got, want)
		}
	}
	// If a list is no longer cached, the client gets a new list with another ID.
	first := w.tools(ToolQuery{Limit: 5})
	for range maxLists {
		w.tools(ToolQuery{Limit: 5})
	}
	if again := w.tools(ToolQuery{Limit: 5, Offset: 5, Snapshot: first.Snapshot}); again.Snapshot == first.Snapshot || len(again.Tools) != 5 {
		t.Errorf("%+v", again)
	}
	if other := w.tools(ToolQuery{ToolFilter: ToolFilter{Operation: "read"}, Limit: 5, Snapshot: first.Snapshot}); other.Total >= first.Total {
		t.Errorf("the snapshot with another filter: %d", other.Total)
	}
	if len(w.inspect.lists.all) > maxLists {
		t.Errorf("%d lists are cached", len(w.inspect.lists.all))
	}
	if past := w.tools(ToolQuery{Offset: 1 << 40}); len(past.Tools) != 0 || past.Tools == nil || past.Total == 0 {
		t.Errorf("past the end: %+v", past)
	}
}

// BenchmarkTools measures listing a page of 100 of 10,000 tools.
func BenchmarkTools(b *testing.B) {
	w := many(b, 100, 100)
	for n := range 100 {
		w.called(fmt.Sprint("s", n), fmt.Sprint("tool-", n), 1, activity.Success, 0)
	}
	for _, c := range []struct {
		name  string
		query ToolQuery
	}{
		{"first", ToolQuery{Limit: 100}},
		{"by name", ToolQuery{Limit: 100, ToolFilter: ToolFilter{Sort: "name"}}},
		{"by calls", ToolQuery{Limit: 100, ToolFilter: ToolFilter{Sort: "calls"}}},
		{"text", ToolQuery{Limit: 100, ToolFilter: ToolFilter{Text: "tool-7", Sort: "name"}}},
		{"full 1000", ToolQuery{Limit: 1000, Detail: Full}},
		{"next", ToolQuery{Limit: 100, Offset: 5000, Snapshot: w.tools(ToolQuery{Limit: 100}).Snapshot}},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				if l := w.tools(c.query); len(l.Tools) == 0 {
					b.Fatal("no tools")
				}
			}
		})
	}
}
