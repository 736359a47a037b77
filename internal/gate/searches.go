package gate

import (
	"sync"
	"time"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

// The limits of remembered searches.
const (
	maxSearchers   = 500 // number of sessions
	searchesKept   = 3   // the latest searches of each session
	answerKept     = 50  // tools of each result
	rememberedFor  = 30 * time.Minute
	maxQueryOfCall = 500 // bytes of the query that the record of a call keeps
)

// recentSearches remembers the searches of each session and their results, so that the record of a call can contain
// how its tool was found. They are in memory only.
type recentSearches struct {
	mu        sync.Mutex // guards bySession
	bySession map[string]*sessionSearches
}

// sessionSearches are the latest searches of one session, newest first.
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

// add stores a search with the tools that it returned. It keeps the slice told.
func (s *recentSearches) add(session, query string, told []tool.ID) {
	a := searchAnswer{query: problem.ClipForDisplay(query, maxQueryOfCall), tools: told[:min(len(told), answerKept)]}
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.bySession[session]
	if of == nil {
		evictWhenFull(s.bySession, maxSearchers, func(of *sessionSearches) bool { return now.Sub(of.at) > rememberedFor })
		of = &sessionSearches{}
		s.bySession[session] = of
	}
	of.at = now
	kept := of.answers[:min(len(of.answers), searchesKept-1)]
	of.answers = append([]searchAnswer{a}, kept...)
}

// searchThatFound returns the search with which a session found a tool; nil if there is none.
func (s *recentSearches) searchThatFound(session string, id tool.ID) *activity.Search {
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
