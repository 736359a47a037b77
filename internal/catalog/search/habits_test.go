package search

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpproxy/internal/catalog/tool"
)

func uses(query, server, name string, times int) (out []ToolCallAfterQuery) {
	for range times {
		out = append(out, ToolCallAfterQuery{query, tool.ID{Server: server, Tool: name}})
	}
	return out
}

// TestHabits checks that a tool that was used after a query ranks higher, but never above a tool that the query names
// or whose words match far better.
func TestHabits(t *testing.T) {
	ix := build(shelf)
	h := LearnHabits(append(uses("look up customers", "db", "query", 5), uses("create something", "fs", "read_text_file", 50)...))
	first := func(h *Habits, query string) string {
		hits, _ := ix.Search(h, query, 1, nil)
		if len(hits) == 0 {
			return ""
		}
		return ix.names(hits)[0]
	}
	if got := first(nil, "customers"); got != "" {
		t.Errorf("without habits: got %s", got)
	}
	for query, want := range map[string]string{
		"customers": "db:query", "find a customer in the database": "db:query",
		"create_issue": "github:create_issue", "create an issue in gitlab": "gitlab:create_issue",
	} {
		if got := first(h, query); got != want {
			t.Errorf("%q finds %s, want %s", query, got, want)
		}
	}
	for _, query := range []string{"customers", "create issue", "query", ""} {
		hits, _ := ix.Search(h, query, 10, nil)
		for i, hit := range hits {
			if hit.Score <= 0 || hit.Score > 1 || i > 0 && hit.Score > hits[i-1].Score {
				t.Errorf("%q: scores %v", query, hits)
			}
		}
	}
}

// TestHabitsIgnoreHiddenTools checks that habits do not affect tools that a view hides, or that were removed.
func TestHabitsIgnoreHiddenTools(t *testing.T) {
	ix := NewIndex(partsOf(shelf))
	h := LearnHabits(append(uses("customers", "db", "query", 5), uses("customers", "gone", "query", 5)...))
	v := ix.View(func(doc int) bool { return ix.toolID(uint32(doc)).Server != "db" })
	if hits, total := v.Search(h, "customers", 5, nil); len(hits) != 0 || total != 0 {
		t.Errorf("got %v", v.names(hits))
	}
}

// TestLearnIsBounded checks that the result does not depend on the order of uses, and that their number is limited.
func TestLearnIsBounded(t *testing.T) {
	var many []ToolCallAfterQuery
	for i := range maxUses + 500 {
		many = append(many, ToolCallAfterQuery{fmt.Sprint("query number ", i%100), tool.ID{Server: "db", Tool: fmt.Sprint("t", i%7)}})
	}
	h := LearnHabits(many)
	if len(h.tools) != 7 {
		t.Errorf("got %d tools", len(h.tools))
	}
	v := build(shelf)
	one, two := append(uses("read it", "db", "query", 2), uses("read it", "fs", "read_text_file", 1)...), append(uses("read it", "fs", "read_text_file", 1), uses("read it", "db", "query", 2)...)
	a, _ := v.Search(LearnHabits(one), "please read it", 5, nil)
	b, _ := v.Search(LearnHabits(two), "please read it", 5, nil)
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("the order of uses matters:\n%s", diff)
	}
}
