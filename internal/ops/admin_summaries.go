package ops

import (
	"sync"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/approval"
)

// maxSummaries is how many summaries are kept: all of those that wait, unless that
// is very many.
const maxSummaries = 20_000

// summaries keeps of what waits how it differs from what is approved. The zero
// value is empty.
type summaries struct {
	mu   sync.Mutex // guards kept
	kept map[[2]tool.Fingerprint]*approval.ChangeSummary
}

// of returns the summary of a change, which is made when it is not kept.
func (s *summaries) of(was, is tool.Fingerprint, compare func() *approval.ChangeSummary) *approval.ChangeSummary {
	key := [2]tool.Fingerprint{was, is}
	s.mu.Lock()
	summary := s.kept[key]
	s.mu.Unlock()
	if summary != nil {
		return summary
	}
	if summary = compare(); summary == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept == nil || len(s.kept) >= maxSummaries {
		s.kept = map[[2]tool.Fingerprint]*approval.ChangeSummary{}
	}
	s.kept[key] = summary
	return summary
}
