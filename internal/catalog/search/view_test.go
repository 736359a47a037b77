package search

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/testutil/volume"
)

// TestHiddenToolsDoNotInfluenceSearch checks that tools outside a view have no influence. The result is exactly equal
// to the result of an index with only the tools of the view.
func TestHiddenToolsDoNotInfluenceSearch(t *testing.T) {
	volume.SkipUnderRace(t)
	defs := definitions(t, "ref065/tools.jsonl")
	defs = append(defs, definitions(t, "metatool/tools.jsonl")...)
	var queries []string
	for i, q := range scaleQueries(t) {
		if i%15 == 0 {
			queries = append(queries, q)
		}
	}
	queries = append(queries, "git_add", "git:git_add", "git add", "creat entitys", "read the fil", "filesystem list files", "")
	masks := map[string]func(tool.ID) bool{
		"a server":           func(id tool.ID) bool { return id.Server != "git" },
		"some tools":         func(id tool.ID) bool { return len(id.Tool)%3 != 0 },
		"some, and a server": func(id tool.ID) bool { return id.Server != "plugins" && len(id.Tool)%2 != 0 },
		"all":                func(tool.ID) bool { return true },
		"none":               func(tool.ID) bool { return false },
	}
	ix := NewIndex(partsOf(defs))
	for name, shown := range masks {
		t.Run(name, func(t *testing.T) {
			var left []tool.Definition
			for _, d := range defs {
				if shown(d.ID) {
					left = append(left, d)
				}
			}
			view, alone := ix.View(func(doc int) bool { return shown(ix.toolID(uint32(doc))) }), build(left)
			if view.Len() != len(left) {
				t.Errorf("got %d shown tools, want %d", view.Len(), len(left))
			}
			for _, q := range queries {
				if diff := cmp.Diff(answerTo(alone, q), answerTo(view, q)); diff != "" {
					t.Fatalf("%q: hidden tools change the result:\n%s", q, diff)
				}
			}
		})
	}
}

// TestLimitsArePrefixes checks that the result for a small limit is the beginning of the result for a larger one.
func TestLimitsArePrefixes(t *testing.T) {
	volume.SkipUnderRace(t)
	ix := build(definitions(t, "ref065/tools.jsonl"))
	queries := scaleQueries(t)
	for _, q := range queries[:volume.FullOrQuick(len(queries), len(queries)/5)] {
		all, _ := ix.Search(nil, q, 50, nil)
		for _, n := range []int{1, 3, 10, 20} {
			some, _ := ix.Search(nil, q, n, nil)
			if want := all[:min(n, len(all))]; !cmp.Equal(some, want) && len(want) > 0 {
				t.Fatalf("%q: the first %d are %v, want the prefix of %v", q, n, ix.names(some), ix.names(want))
			}
		}
	}
}

// TestNamesComeFirst checks that matches in names come before matches in descriptions.
func TestNamesComeFirst(t *testing.T) {
	defs := append([]tool.Definition{
		definition("tracker", "create_issue", "Create an issue", ""),
		definition("tracker", "closeIssue", "Close what is done", ""),
		definition("weather", "report", "Tell the weather", ""),
		definition("news", "weather_report", "The weather report of the news about tracker create and close issue issue issue", ""),
		definition("files", "read", "Read a weather report file, a tracker, an issue", ""),
	}, shelf...)
	for i := range 50 {
		defs = append(defs, definition("noise", fmt.Sprintf("issue_%d", i), "create an issue, close an issue, tracker issue, weather", ""))
	}
	ix := build(defs)
	tests := []struct{ query, first string }{
		{"tracker:create_issue", "tracker:create_issue"},
		{"tracker__closeIssue", "tracker:closeIssue"},
		{"tracker create issue", "tracker:create_issue"},
		{"Tracker: close issue", "tracker:closeIssue"},
		{"close_issue", "tracker:closeIssue"},
		{"closeIssue", "tracker:closeIssue"},
		{"weather_report", "news:weather_report"},
		{"weather report", "weather:report"},
		{"weather the report", "weather:report"},
		{"tracker close an old issue", "tracker:closeIssue"},
		{"what_is", "misc:what_is"},
	}
	for _, tt := range tests {
		hits, _ := ix.Search(nil, tt.query, 3, nil)
		if got := ix.names(hits); len(got) == 0 || got[0] != tt.first {
			t.Errorf("Search(%q) = %v, want %s first", tt.query, got, tt.first)
		}
	}
}
