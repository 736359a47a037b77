package gate

import (
	"sync"
	"time"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

// The bounds of what is remembered of searches.
const (
	maxSearchers   = 500 // sessions
	searchesKept   = 3   // of each, the latest
	answerKept     = 50  // tools of each answer
	rememberedFor  = 30 * time.Minute
	maxQueryOfCall = 500 // bytes of the query that the record of a call keeps
)

// recentSearches remember what each session searched for and was told, so that the
// record of a call can say how its tool was found. They are in memory only.
type recentSearches struct {
	mu        sync.Mutex // guards what follows
	bySession map[string]*sessionSearches
}

// sessionSearches are the latest searches of one session, the last one first.
type sessionSearches struct {
	at      time.Time
	answers []searchAnswer
}

type searchAnswer struct {
	query string
	tools []tool.ID
}

func newRecentSearches() *recentSearches {
	return &recentSearches{bySession: map[string]*sessionSearches{}}
}

// remember notes an answer, and keeps told.
func (s *recentSearches) remember(session, query string, told []tool.ID) {
	a := searchAnswer{query: problem.ClipForDisplay(query, maxQueryOfCall), tools: told[:min(len(told), answerKept)]}
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.bySession[session]
	if of == nil {
		forget(s.bySession, maxSearchers, func(of *sessionSearches) bool { return now.Sub(of.at) > rememberedFor })
		of = &sessionSearches{}
		s.bySession[session] = of
	}
	of.at = now
	kept := of.answers[:min(len(of.answers), searchesKept-1)]
	of.answers = append([]searchAnswer{a}, kept...)
}

// found returns how a session came to a tool; nil when it did not search.
func (s *recentSearches) found(session string, id tool.ID) *activity.Search {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.bySession[session]
	if of == nil || time.Since(of.at) > rememberedFor {
		return nil
	}
	for _, a := range of.answers {
		for i, t := range a.tools {
			if t == id {
				return &activity.Search{Query: a.query, Rank: i + 1}
			}
		}
	}
	return &activity.Search{Query: of.answers[0].query}
}
