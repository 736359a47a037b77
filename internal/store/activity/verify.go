package activity

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
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
	Signer     string    `json:"signer,omitempty" doc:"The public key (Ed25519) that the log is signed with, in hexadecimal digits."`
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

// VerifyFiles checks a log that no process has open: the spool in dir and the chain of the
// store. It returns the first break, nil when there is none. The store may be behind the
// spool, and the last line of the spool may be torn: a start mends both.
func VerifyFiles(dir string, chain Chained) (*Break, error) {
	m, inSpool, err := spoolBreak(dir)
	if err != nil {
		return nil, err
	}
	c := chainCheck{spool: link{m.end.Seq, m.end.Hash}}
	_, end, err := chain(c.add)
	if err != nil && !errors.Is(err, errBroken) {
		return nil, err
	}
	if c.spool.seq > end.Seq {
		c.spool = link{} // the store is behind
	}
	if err == nil {
		c.end(end, end.Chain)
	}
	if c.first == nil && inSpool == nil {
		if inSpool, err = m.openBreak(&c.erasures); err != nil {
			return nil, err
		}
	}
	if inSpool != nil && (c.first == nil || inSpool.Seq < c.first.Seq) {
		c.first = inSpool
	}
	return c.first, nil
}

// spoolBreak looks for the first entry that does not fit in a spool that no process has
// open. The mark ends with the last entry that fits.
func spoolBreak(dir string) (m mark, first *Break, err error) {
	segments, err := listSegments(dir)
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	for _, seg := range segments {
		m.segments = append(m.segments, *seg)
	}
	last, all, wholeErr := m.whole(0)
	if err = errors.Join(err, wholeErr); err != nil {
		return m, nil, err
	}
	m.end.Seq, m.end.Hash = max(0, last.seq), last.hash
	if all {
		return m, nil, nil
	}
	if torn, err := m.torn(last); torn || err != nil {
		return m, nil, err
	}
	return m, &Break{Seq: m.end.Seq + 1, Reason: fmt.Sprintf("In the spool, what follows entry %d was changed, removed or inserted.", m.end.Seq)}, nil
}

// torn reports whether all that follows the last whole entry is one line without an end,
// which a process that was killed leaves behind.
func (m *mark) torn(last link) (bool, error) {
	seg := m.segments[len(m.segments)-1]
	data, err := os.ReadFile(seg.path)
	if err != nil {
		return false, fmt.Errorf("verify the spool: %w", err)
	}
	data = data[:min(int64(len(data)), seg.size)]
	s, ok := readByteRange(data)
	if !ok {
		return !bytes.Contains(data, []byte{'\n'}), nil // not even its header was written
	}
	return s.last == last && !bytes.Contains(s.rest, []byte{'\n'}), nil
}

// errBroken ends the reading of a chain: more than the first break is not looked for.
var errBroken = errors.New("the chain is broken")

// openBreak looks for the first field in the spool that says it was erased, and was not.
func (m *mark) openBreak(c *erasures) (first *Break, err error) {
	for _, seg := range m.segments {
		data, err := os.ReadFile(seg.path)
		if errors.Is(err, os.ErrNotExist) {
			continue // pruned meanwhile
		}
		if err != nil {
			return nil, fmt.Errorf("verify the spool: %w", err)
		}
		for line := range bytes.Lines(data[:min(int64(len(data)), seg.size)]) {
			_, payload, ok := splitLine(bytes.TrimSuffix(line, []byte{'\n'}))
			if !ok {
				continue
			}
			seq, _, _ := placeOf(payload)
			if !c.add(seq, payload) {
				return c.first, nil
			}
		}
	}
	return c.end(), nil
}

// erasures holds what fields say of when they were erased against what is on record.
type erasures struct {
	said     map[erasure]int64 // the number of an entry whose field says so
	recorded map[erasure]bool  // entries say so
	first    *Break
}

// erasure is that a field of a record was erased.
type erasure struct {
	id    string
	field Field
	at    int64 // in seconds
}

// add looks at an entry, and reports whether its fields are as they can be.
func (c *erasures) add(seq int64, payload []byte) bool {
	if c.said == nil {
		c.said, c.recorded = map[erasure]int64{}, map[erasure]bool{}
	}
	id := idOf(payload)
	sealed, open, _ := parts(payload)
	_ = eachOpen(open, func(f openField) {
		if f.erased() == nil {
			return
		}
		at, ok := f.erasedAt()
		if !ok && c.first == nil {
			c.first = &Break{id, seq, fmt.Sprintf("The field %s of entry %d is neither what was written nor erased.", f.name, seq)}
		}
		c.said[erasure{id, f.name, at.Unix()}] = seq
	})
	if bytes.Contains(sealed, []byte(`"redacted":{"id":"`)) {
		if p, err := decodePayload(payload); err == nil && p.redacts() != nil {
			for _, f := range p.redacts().Fields {
				c.recorded[erasure{p.Metadata.Redacted.ID, f, p.Timestamp.Unix()}] = true
			}
		}
	}
	return c.first == nil
}

// end returns the first field that was erased without a record of that.
func (c *erasures) end() *Break {
	for e, seq := range c.said {
		if !c.recorded[e] && (c.first == nil || seq < c.first.Seq) {
			c.first = &Break{e.id, seq, fmt.Sprintf("The field %s of entry %d is erased, and no record says that somebody has erased it then.", e.field, seq)}
		}
	}
	return c.first
}

// signatures holds the signed places against the keys that signed them.
type signatures struct {
	key   []byte          // which signs now; nil: none
	known map[string]bool // keys that are on record
	from  int64           // from here on places are to be signed; 0: not known
	seen  map[int64]bool  // those that are to be and are
	cut   int64           // the log is pruned up to here
	named bool            // cut is signed
}

// told notes a key that is on record.
func (s *signatures) told(seq int64, key []byte) {
	if s.known == nil {
		s.known = map[string]bool{}
	}
	if key != nil {
		s.known[string(key)] = true
	}
	if s.from == 0 || seq < s.from {
		s.from = seq
	}
}

// add takes a signed place whose signature fits.
func (s *signatures) add(c *Checkpoint) {
	if s.seen == nil {
		s.seen = map[int64]bool{}
	}
	if c.Seq%signEvery == 0 && !c.Pruned {
		s.seen[c.Seq] = true
	}
	if c.Pruned {
		s.named = true
		s.told(c.Seq, nil)
	}
}

// missing returns the number of the first entry that should be signed and is not; 0 when
// there is none.
func (s *signatures) missing(end int64) int64 {
	if s.from == 0 {
		return 0
	}
	for seq := (s.from/signEvery + 1) * signEvery; seq <= end; seq += signEvery {
		if !s.seen[seq] {
			return seq
		}
	}
	return 0
}

// chainCheck follows the chain through the store.
type chainCheck struct {
	at      link // the last entry
	record  int64
	entries int64
	first   *Break
	spool   link // what the spool ends with
	erasures
	signatures
	signed []*Checkpoint // by keys that are to be on record yet
}

// add checks what follows.
func (c *chainCheck) add(p ChainPart) error {
	if p.Checkpoint != nil {
		return c.checkpoint(p.Checkpoint)
	}
	before := c.at
	c.at = link{p.Seq, p.Hash}
	if !p.Gone {
		c.entries++
	}
	if p.Pruned {
		c.cut = p.Seq
	}
	switch next := before.seq + 1; {
	case p.First == next+1:
		return c.broken(next, "", "Entry %d is missing.", next)
	case p.First > next:
		return c.broken(next, "", "The entries from %d to %d are missing.", next, p.First-1)
	case p.First < next:
		return c.broken(p.First, p.id(), "Entry %d comes a second time, after entry %d: it was inserted, or the log was begun anew.", p.First, before.seq)
	case !p.Gone && !follows(before.hash, p.Payload, p.Hash):
		return c.broken(p.Seq, p.id(), "Entry %d was changed, or is not the one that followed entry %d.", p.Seq, before.seq)
	case p.Record != 0 && p.Record < c.record:
		return c.broken(p.Seq, p.id(), "The record that entry %d begins stands at another place among the records.", p.Seq)
	case p.Seq == c.spool.seq && p.Hash != c.spool.hash:
		return c.broken(p.Seq, p.id(), "Entry %d is another one in the spool than in the database.", p.Seq)
	}
	c.record = max(c.record, p.Record)
	if p.Gone {
		return nil
	}
	if !c.erasures.add(p.Seq, p.Payload) {
		c.first = c.erasures.first
		return errBroken
	}
	if key := keyOf(p.Payload); key != nil {
		c.told(p.Seq, key)
	}
	return nil
}

// checkpoint checks a place that was signed, and comes after its entry.
func (c *chainCheck) checkpoint(p *Checkpoint) error {
	switch {
	case p.Seq > c.at.seq:
		return c.broken(c.at.seq+1, "", "What follows entry %d is missing: entry %d was there, and was signed.", c.at.seq, p.Seq)
	case p.Seq == c.at.seq && p.Hash != c.at.hash:
		return c.broken(p.Seq, "", "Entry %d is not the one that was signed.", p.Seq)
	case !p.Signed():
		return c.broken(p.Seq, "", "The signature at entry %d does not fit.", p.Seq)
	}
	if string(p.Key) != string(c.key) {
		c.signed = append(c.signed, p)
	}
	c.signatures.add(p)
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
	case c.erasures.end() != nil:
		c.first = c.erasures.first
	case c.key != nil || len(c.signed) > 0:
		c.endSigned(at.Seq)
	}
}

// endSigned checks that everything is signed that is to be, with keys that are known.
func (c *chainCheck) endSigned(end int64) {
	for _, p := range c.signed {
		if !c.known[string(p.Key)] {
			_ = c.broken(p.Seq, "", "Entry %d is signed with the key %x, which is not on record.", p.Seq, p.Key)
			return
		}
	}
	if c.cut > 0 && !c.named && c.from == 0 {
		_ = c.broken(c.cut, "", "The log begins after entry %d, and nobody has signed that what was before was pruned.", c.cut)
	} else if seq := c.missing(end); seq > 0 {
		_ = c.broken(seq, "", "Entry %d should be signed, and is not.", seq)
	}
}

// Chained reads the chain of one of the instances that share a store, as Store.Chain does.
type Chained func(fn func(ChainPart) error) (records int64, end Position, err error)

// verifyOthers checks the chains of the other instances that share a store, by what the store has:
// their spools are with them. It returns the first break, which names the instance.
func verifyOthers(ctx context.Context, others func(context.Context, func(name string, chain Chained) error) error) (records, entries int64, first *Break, err error) {
	err = others(ctx, func(name string, chain Chained) error {
		c := chainCheck{}
		n, end, err := chain(c.add)
		if err != nil && !errors.Is(err, errBroken) {
			return err
		}
		if err == nil {
			c.end(end, end.Chain)
		}
		records, entries = records+n, entries+c.entries
		if c.first == nil {
			return nil
		}
		first = c.first
		first.Reason = "Of instance " + name + ": " + first.Reason
		return errBroken
	})
	if errors.Is(err, errBroken) {
		err = nil
	}
	return records, entries, first, err
}
