package gate

import (
	"fmt"
	"testing"

	"mcpproxy/internal/catalog/tool"
)

func TestSearchesAreBounded(t *testing.T) {
	s := newRecentSearches()
	told := make([]tool.ID, 100)
	for i := range told {
		told[i] = tool.ID{Server: "s", Tool: fmt.Sprint(i)}
	}
	for i := range 3 * maxSearchers {
		s.add(fmt.Sprint("session ", i), "query", told)
	}
	if len(s.bySession) > maxSearchers {
		t.Errorf("%d sessions are remembered", len(s.bySession))
	}
	for range 10 {
		s.add("one", string(make([]byte, 5000)), told)
	}
	of := s.bySession["one"]
	if len(of.answers) != searchesKept || len(of.answers[0].tools) != answerKept || len(of.answers[0].query) > maxQueryOfCall+len("…") {
		t.Errorf("%d searches with %d tools and %d bytes", len(of.answers), len(of.answers[0].tools), len(of.answers[0].query))
	}
	of.at = of.at.Add(-2 * rememberedFor)
	if got := s.searchThatFound("one", told[0]); got != nil {
		t.Errorf("an old search is still remembered: %+v", got)
	}
}
