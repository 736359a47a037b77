package ops

import (
	"sync"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/approval"
)

// maxSummaries limits the number of cached summaries. It exceeds the usual number of waiting definitions.
const maxSummaries = 20_000

// changeSummaryCache caches the differences between waiting and approved definitions. The zero value is empty.
type changeSummaryCache struct {
	mu       sync.Mutex // guards byChange
	byChange map[[2]tool.Fingerprint]*approval.ChangeSummary
}

// getOrCompute returns the summary of a change from the cache. If it is not cached, it calls compare and caches the
// result.
func (s *changeSummaryCache) getOrCompute(was, is tool.Fingerprint, compare func() *approval.ChangeSummary) *approval.ChangeSummary {
	key := [2]tool.Fingerprint{was, is}
	s.mu.Lock()
	summary := s.byChange[key]
	s.mu.Unlock()
	if summary != nil {
		return summary
	}
	if summary = compare(); summary == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byChange == nil || len(s.byChange) >= maxSummaries {
		s.byChange = map[[2]tool.Fingerprint]*approval.ChangeSummary{}
	}
	s.byChange[key] = summary
	return summary
}
