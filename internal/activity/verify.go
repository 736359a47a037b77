package activity

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Verification is what Verify has found.
type Verification struct {
	OK         bool      `json:"ok" doc:"The whole log is as it was written."`
	Records    int64     `json:"records" doc:"Records that were looked at."`
	Entries    int64     `json:"entries" doc:"Entries whose hash was checked: the beginnings and the ends of the records."`
	At         time.Time `json:"at"`
	TookMS     int64     `json:"took_ms"`
	FirstBreak *Break    `json:"first_break,omitempty" doc:"Where the log is not as it was written, for the first time."`
}

// Break is where the chain does not hold.
type Break struct {
	ID     string `json:"id,omitempty" doc:"The record, where it is known."`
	Seq    int64  `json:"seq" doc:"The number of the entry."`
	Reason string `json:"reason"`
}

// Verified is the last outcome of Verify.
type Verified struct {
	At time.Time `json:"at"`
	OK bool      `json:"ok"`
}

// verifier has one verification run at a time.
type verifier struct {
	mu      sync.Mutex // guards what follows
	running *verifying // nil: none
	stop    context.CancelFunc
	closed  bool
	last    *Verified
}

// verifying is a verification that runs, with what it has found when done is closed.
type verifying struct {
	done  chan struct{}
	found Verification
	err   error
}

// close stops what runs, and begins nothing more.
func (v *verifier) close() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.closed = true
	if v.running != nil {
		v.stop()
	}
}

// verified returns the last outcome, nil when there is none yet.
func (v *verifier) verified() *Verified {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.last
}

// firstBreak looks for the first entry in the spool that does not fit.
func (m *mark) firstBreak() (*Break, error) {
	last, all, err := m.whole(0)
	switch {
	case err != nil:
		return nil, err
	case !all:
		return &Break{Seq: max(0, last.seq) + 1, Reason: fmt.Sprintf("In the spool, what follows entry %d was changed, removed or inserted.", max(0, last.seq))}, nil
	case last.seq >= 0 && last != (link{m.end.Seq, m.end.Hash}):
		return &Break{Seq: min(last.seq, m.end.Seq) + 1, Reason: fmt.Sprintf("The spool ends with entry %d, and not with entry %d as it was written.", last.seq, m.end.Seq)}, nil
	}
	return nil, nil
}

// errBroken ends the reading of a chain: more than the first break is not looked for.
var errBroken = errors.New("the chain is broken")

// chainCheck follows the chain through the store.
type chainCheck struct {
	at      link // the last entry
	record  int64
	entries int64
	first   *Break
	spool   link // what the spool ends with
}

// add checks what follows.
func (c *chainCheck) add(p ChainPart) error {
	before := c.at
	c.at = link{p.Seq, p.Hash}
	if !p.Gone {
		c.entries++
	}
	switch next := before.seq + 1; {
	case p.First == next+1:
		return c.broken(next, "", "Entry %d is missing.", next)
	case p.First > next:
		return c.broken(next, "", "The entries from %d to %d are missing.", next, p.First-1)
	case p.First < next:
		return c.broken(p.First, p.id(), "Entry %d comes a second time, after entry %d: it was inserted, or the log was begun anew.", p.First, before.seq)
	case !p.Gone && chainHash(before.hash, p.Payload) != p.Hash:
		return c.broken(p.Seq, p.id(), "Entry %d was changed, or is not the one that followed entry %d.", p.Seq, before.seq)
	case p.Record != 0 && p.Record < c.record:
		return c.broken(p.Seq, p.id(), "The record that entry %d begins stands at another place among the records.", p.Seq)
	case p.Seq == c.spool.seq && p.Hash != c.spool.hash:
		return c.broken(p.Seq, p.id(), "Entry %d is another one in the spool than in the database.", p.Seq)
	}
	c.record = max(c.record, p.Record)
	return nil
}

func (c *chainCheck) broken(seq int64, id, reason string, args ...any) error {
	c.first = &Break{ID: id, Seq: seq, Reason: fmt.Sprintf(reason, args...)}
	return errBroken
}

// end checks that the chain ends as the store says, and has what the spool has.
func (c *chainCheck) end(at Position, chain string) {
	switch {
	case c.at.seq != at.Seq || c.at.hash != at.Hash:
		_ = c.broken(min(c.at.seq, at.Seq)+1, "", "The database ends with entry %d, and not with entry %d as it was written.", c.at.seq, at.Seq)
	case c.at.seq < c.spool.seq:
		_ = c.broken(c.at.seq+1, "", "The database ends with entry %d, and the spool with entry %d.", c.at.seq, c.spool.seq)
	case at.Seq > 0 && at.Chain != chain:
		_ = c.broken(at.Seq, "", "The spool was begun anew after entry %d.", at.Seq)
	}
}
