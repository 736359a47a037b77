package activity

import (
	"context"
	"fmt"
)

// Verification is what Verify found.
type Verification struct {
	Entries     int64
	First, Last int64  // the numbers of the first and the last entry
	Break       string // where the chain is broken first; empty when it is whole
}

// Verify checks the chain of what is in the spool.
func (l *Log) Verify(context.Context) (Verification, error) {
	m := l.spool.mark()
	var v verifier
	for _, seg := range m.segments {
		v.until = m.after(seg.first)
		if err := v.segment(seg); err != nil || v.broken {
			return Verification{Break: fmt.Sprintf("what follows entry %d does not fit", v.last.seq)}, err
		}
	}
	if len(m.segments) == 0 {
		return Verification{}, nil
	}
	found := Verification{First: m.segments[0].first, Last: v.last.seq}
	found.Entries = found.Last - found.First + 1
	if v.last != (link{m.end.Seq, m.end.Hash}) {
		found.Break = fmt.Sprintf("the spool ends with entry %d, not with %d", v.last.seq, m.end.Seq)
	}
	return found, nil
}
