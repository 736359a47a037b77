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
	last, all, err := m.whole(0)
	if err != nil || !all {
		return Verification{Break: fmt.Sprintf("what follows entry %d does not fit", last.seq)}, err
	}
	if len(m.segments) == 0 {
		return Verification{}, nil
	}
	found := Verification{First: m.segments[0].first, Last: last.seq}
	found.Entries = found.Last - found.First + 1
	if last != (link{m.end.Seq, m.end.Hash}) {
		found.Break = fmt.Sprintf("the spool ends with entry %d, not with %d", last.seq, m.end.Seq)
	}
	return found, nil
}
