package activity

import (
	"errors"
	"fmt"
	"os"
)

// verifier follows the chain through the segments of the spool until it breaks.
type verifier struct {
	last   link
	known  bool  // last is the link before
	until  int64 // the first entry of the next segment
	broken bool  // what follows last does not fit, or is unreadable
}

func (v *verifier) segment(seg segment) error {
	data, err := os.ReadFile(seg.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil // pruned meanwhile
	}
	if err != nil {
		return fmt.Errorf("verify the spool: %w", err)
	}
	s, ok := readStretch(data[:min(int64(len(data)), seg.size)])
	if !ok {
		s.prev.seq = -1
	}
	v.broken = !ok || v.known && v.last != s.prev
	if v.last, v.known = s.prev, true; v.broken {
		return nil
	}
	whole := s.after(v.until - 1) // what follows is the rest of a write that has failed
	v.broken = whole.prev.seq+1 < v.until && len(s.rest) > 0
	v.last = s.last
	if whole.prev.seq+1 == v.until {
		v.last = whole.prev
	}
	return nil
}
