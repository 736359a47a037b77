package search

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestExplain(t *testing.T) {
	ix := build(shelf)
	explain := func(query string) []MatchReason {
		hits, _ := ix.Search(nil, query, 1, nil)
		doc := hits[0].Doc
		for i := range shelf {
			if shelf[i].ID == ix.ix.toolID(uint32(doc)) {
				reasons := ix.MatchReasons(nil, query, doc, &shelf[i])
				for j := range reasons {
					reasons[j].Share = 0
				}
				return reasons
			}
		}
		t.Fatal("no definition")
		return nil
	}
	tests := []struct {
		query string
		want  []MatchReason
	}{
		{"erase a githubs repositry", []MatchReason{
			{Asked: "repositry", Found: []string{"repository"}, How: Misspelt, Fields: []string{"name", "summary"}},
			{Asked: "erase", Found: []string{"delete"}, How: Synonym, Fields: []string{"name", "summary"}},
			{Asked: "githubs", Found: []string{"github"}, How: SameStem, Fields: []string{"server", "summary"}},
		}},
		{"regression", []MatchReason{{Asked: "regression", Found: []string{"regression"}, How: SameWord, Fields: []string{"parameter_text"}}}},
		{"gitlab create issues", []MatchReason{
			{Asked: "gitlab create issues", Found: []string{"create_issue"}, How: ByName, Fields: []string{"name"}},
			{Asked: "gitlab create issues", Found: []string{"gitlab"}, How: ByName, Fields: []string{"server"}},
			{Asked: "gitlab", Found: []string{"gitlab"}, How: SameWord, Fields: []string{"server"}},
			{Asked: "create", Found: []string{"create"}, How: SameWord, Fields: []string{"name"}},
			{Asked: "issues", Found: []string{"issue"}, How: SameStem, Fields: []string{"name"}},
			{Asked: "issues", Found: []string{"ticket"}, How: Synonym, Fields: []string{"summary"}},
		}},
	}
	for _, tt := range tests {
		got := explain(tt.query)
		if diff := cmp.Diff(byAsked(tt.want), byAsked(got)); diff != "" {
			t.Errorf("%q:\n%s", tt.query, diff)
		}
	}
}

func byAsked(reasons []MatchReason) map[string][]MatchReason {
	out := map[string][]MatchReason{}
	for _, r := range reasons {
		out[r.Asked] = append(out[r.Asked], r)
	}
	return out
}

func TestExplainUse(t *testing.T) {
	ix := build(shelf)
	h := LearnHabits(uses("customers", "db", "query", 3))
	hits, _ := ix.Search(h, "customers", 1, nil)
	got := ix.MatchReasons(h, "customers", hits[0].Doc, &shelf[5])
	if len(got) != 1 || got[0].How != ByUse || got[0].How.String() != "used" {
		t.Errorf("reasons %+v, want only ByUse", got)
	}
}

func TestExplainShares(t *testing.T) {
	ix := build(shelf)
	hits, _ := ix.Search(nil, "delete repository owner", 1, nil)
	reasons := ix.MatchReasons(nil, "delete repository owner", hits[0].Doc, &shelf[1])
	sum := 0.0
	for i, r := range reasons {
		sum += r.Share
		if i > 0 && r.Share > reasons[i-1].Share {
			t.Errorf("reason %d has a larger share than the previous one: %+v", i, reasons)
		}
	}
	if sum < 0.99 || sum > 1.01 {
		t.Errorf("the sum of the shares is %v, want 1: %+v", sum, reasons)
	}
}
