package search

import (
	"slices"
	"testing"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/testutil/volume"
)

func TestAmongTenThousand(t *testing.T) {
	volume.SkipUnderRace(t)
	wanted := definition("tracker", "create_issue", "Create an issue in a project of the tracker.",
		`{"type":"object","properties":{"title":{"type":"string"},"body":{"type":"string"}},"required":["title"]}`)
	same := newNameWording(wanted.ID.Tool).meaning
	n := volume.FullOrQuick(10_000, 2_000)
	defs := scaleTools(t, n+100)
	defs = slices.DeleteFunc(defs, func(d tool.Definition) bool { return newNameWording(d.ID.Tool).meaning == same })
	defs = append(defs[:n-1], wanted)
	ix := build(defs)
	t.Run("one tool", func(t *testing.T) { findsTracker(t, ix) })
	t.Run("odd queries", func(t *testing.T) { answersOddQueries(t, ix) })
}

// findsTracker checks that any wording of a tool's name finds the tool. Tools with the same name, which would also be
// right, are hidden from the view.
func findsTracker(t *testing.T, ix *View) {
	for _, query := range []string{
		"create issue", "creating issues", "make a ticket", "createIssue", "creat isue", "Create an issue!", "CREATE_ISSUE",
		"createissue", "create-issue", "please create an issue", "tracker create issue", "tracker:create_issue", "tracker__create_issue",
	} {
		hits, _ := ix.Search(nil, query, 3, nil)
		if got := ix.names(hits); len(got) == 0 || got[0] != "tracker:create_issue" {
			t.Errorf("Search(%q) = %v, want tracker:create_issue first", query, got)
		}
	}
}

// answersOddQueries checks that queries that no client should send get a valid result, and the same one each time.
func answersOddQueries(t *testing.T, ix *View) {
	for name, query := range oddQueries() {
		first, total := ix.Search(nil, query, 10, nil)
		again, _ := ix.Search(nil, query, 10, nil)
		if !slices.Equal(first, again) {
			t.Errorf("%s: two searches gave %v and %v", name, first, again)
		}
		for _, h := range first {
			if h.Score <= 0 || h.Score > 1 {
				t.Errorf("%s: score %v", name, h.Score)
			}
		}
		if len(first) != min(10, total) {
			t.Errorf("%s: got %d hits of %d", name, len(first), total)
		}
	}
}
