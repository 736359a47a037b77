package activity

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// Verification is the result of Verify.
type Verification struct {
	OK         bool      `json:"ok" doc:"Whether the whole log is unchanged since it was written."`
	Records    int64     `json:"records" doc:"The number of checked records."`
	Entries    int64     `json:"entries" doc:"The number of entries of the hash chain that were checked. A record has an entry for its start and one for its end."`
	At         time.Time `json:"at"`
	TookMS     int64     `json:"took_ms"`
	Signer     string    `json:"signer,omitempty" doc:"The public key (Ed25519) of the log's signatures, in hexadecimal. Absent if the log is not signed."`
	FirstBreak *Break    `json:"first_break,omitempty" doc:"The first entry that is missing or was changed. Absent if there is none."`
}

// Break is the first entry at which the chain is broken, and the reason.
type Break struct {
	ID     string `json:"id,omitempty" doc:"The id of the record. Absent if unknown."`
	Seq    int64  `json:"seq" doc:"The number of the entry in the hash chain."`
	Reason string `json:"reason"`
}

// Verified is the short form of the last Verification.
type Verified struct {
	At time.Time `json:"at"`
	OK bool      `json:"ok"`
}

// firstBreak returns the first entry in the spool that breaks the chain.
func (m *spoolSnapshot) firstBreak() (*Break, error) {
	last, all, err := m.lastWholeEntry(0)
	switch {
	case err != nil:
		return nil, err
	case !all:
		return &Break{Seq: max(0, last.seq) + 1, Reason: fmt.Sprintf("In the spool, entries after entry %d were changed, removed or inserted.", max(0, last.seq))}, nil
	case last.seq >= 0 && last != (chainLink{m.end.Seq, m.end.Hash}):
		return &Break{Seq: min(last.seq, m.end.Seq) + 1, Reason: fmt.Sprintf("The spool ends with entry %d instead of the last written entry %d.", last.seq, m.end.Seq)}, nil
	}
	return nil, nil
}

// VerifyClosedLog checks a log that no process has open: the spool in dir and the chain of the store. It returns the
// first break, or nil. The store may lack the newest entries, and the last line of the spool may be torn. These are not
// breaks, because the next start repairs both.
func VerifyClosedLog(dir string, chain ChainReader) (*Break, error) {
	m, inSpool, err := findSpoolBreak(dir)
	if err != nil {
		return nil, err
	}
	c := chainChecker{spoolEnd: chainLink{m.end.Seq, m.end.Hash}}
	_, end, err := chain(c.checkPart)
	if err != nil && !errors.Is(err, errChainBroken) {
		return nil, err
	}
	if c.spoolEnd.seq > end.Seq {
		c.spoolEnd = chainLink{} // the store lacks the newest entries
	}
	if err == nil {
		c.checkEnd(end, end.Chain)
	}
	err = c.addSpoolBreak(&m, inSpool)
	return c.first, err
}

// addSpoolBreak sets the first break to inSpool, the first break in the spool m, if that is earlier. If there is no
// break, it checks the erased fields in the spool.
func (c *chainChecker) addSpoolBreak(m *spoolSnapshot, inSpool *Break) (err error) {
	if c.first == nil && inSpool == nil {
		inSpool, err = m.findUnrecordedErasure(&c.erasureCheck)
	}
	if inSpool != nil && (c.first == nil || inSpool.Seq < c.first.Seq) {
		c.first = inSpool
	}
	return err
}

// findSpoolBreak returns the first break in a spool that no process has open. The returned snapshot ends with the last
// valid entry.
func findSpoolBreak(dir string) (m spoolSnapshot, first *Break, err error) {
	segments, err := listSegments(dir)
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	for _, seg := range segments {
		m.segments = append(m.segments, *seg)
	}
	last, all, wholeErr := m.lastWholeEntry(0)
	if err = errors.Join(err, wholeErr); err != nil {
		return m, nil, err
	}
	m.end.Seq, m.end.Hash = max(0, last.seq), last.hash
	if all {
		return m, nil, nil
	}
	if torn, err := m.endsInTornLine(last); torn || err != nil {
		return m, nil, err
	}
	return m, &Break{Seq: m.end.Seq + 1, Reason: fmt.Sprintf("In the spool, entries after entry %d were changed, removed or inserted.", m.end.Seq)}, nil
}

// endsInTornLine reports whether only an unfinished line follows the last valid entry. A killed process leaves such a
// line.
func (m *spoolSnapshot) endsInTornLine(last chainLink) (bool, error) {
	seg := m.segments[len(m.segments)-1]
	data, err := os.ReadFile(seg.path)
	if err != nil {
		return false, fmt.Errorf("verify the spool: %w", err)
	}
	data = data[:min(int64(len(data)), seg.size)]
	s, ok := parseChainLines(data)
	if !ok {
		return !bytes.Contains(data, []byte{'\n'}), nil // not even the header was written completely
	}
	return s.last == last && !bytes.Contains(s.rest, []byte{'\n'}), nil
}

// errChainBroken stops reading a chain at the first break.
var errChainBroken = errors.New("the chain is broken")

// findUnrecordedErasure returns the first field in the spool that is marked as erased although no record of the erasure
// exists.
func (m *spoolSnapshot) findUnrecordedErasure(c *erasureCheck) (first *Break, err error) {
	for _, seg := range m.segments {
		data, err := os.ReadFile(seg.path)
		if errors.Is(err, os.ErrNotExist) {
			continue // the segment was pruned in the meantime
		}
		if err != nil {
			return nil, fmt.Errorf("verify the spool: %w", err)
		}
		for line := range bytes.Lines(data[:min(int64(len(data)), seg.size)]) {
			_, payload, ok := splitSpoolLine(bytes.TrimSuffix(line, []byte{'\n'}))
			if !ok {
				continue
			}
			seq, _, _ := parseSeqAndTime(payload)
			if !c.collectErasures(seq, payload) {
				return c.first, nil
			}
		}
	}
	return c.firstUnrecordedErasure(), nil
}

// erasureCheck compares the fields that are marked as erased with the recorded erasures.
type erasureCheck struct {
	claimed  map[erasureKey]int64 // fields marked as erased, with the sequence number of their entry
	recorded map[erasureKey]bool  // recorded erasures
	first    *Break
}

// erasureKey identifies the erasure of a field of a record.
type erasureKey struct {
	id    string
	field ErasableField
	at    int64 // time in seconds
}

// collectErasures collects the marked fields and the recorded erasures of an entry. It reports whether the fields are
// valid.
func (c *erasureCheck) collectErasures(seq int64, payload []byte) bool {
	if c.claimed == nil {
		c.claimed, c.recorded = map[erasureKey]int64{}, map[erasureKey]bool{}
	}
	id := parseRecordID(payload)
	sealed, open, _ := splitPayload(payload)
	_ = eachStoredField(open, func(f storedField) {
		if f.erasedTimeText() == nil {
			return
		}
		at, ok := f.parseErasedTime()
		if !ok && c.first == nil {
			c.first = &Break{id, seq, fmt.Sprintf("The field %s of entry %d was changed, and not erased.", f.name, seq)}
		}
		c.claimed[erasureKey{id, f.name, at.Unix()}] = seq
	})
	if bytes.Contains(sealed, []byte(`"redacted":{"id":"`)) {
		if p, err := decodePayload(payload); err == nil && p.requestedErasure() != nil {
			for _, f := range p.requestedErasure().Fields {
				c.recorded[erasureKey{p.Metadata.Redacted.ID, f, p.Timestamp.Unix()}] = true
			}
		}
	}
	return c.first == nil
}

// firstUnrecordedErasure returns the first field that is marked as erased although no record of the erasure exists.
func (c *erasureCheck) firstUnrecordedErasure() *Break {
	for e, seq := range c.claimed {
		if !c.recorded[e] && (c.first == nil || seq < c.first.Seq) {
			c.first = &Break{e.id, seq, fmt.Sprintf("The field %s of entry %d is erased, but no record reports an erasure.", e.field, seq)}
		}
	}
	return c.first
}

// signatureCheck checks that the required checkpoints exist and that their keys were recorded.
type signatureCheck struct {
	key        []byte          // current key; nil if the log is not signed
	known      map[string]bool // recorded keys
	signedFrom int64           // checkpoints are required from this entry on; 0 if unknown
	seen       map[int64]bool  // required checkpoints that exist
	prunedUpTo int64           // the log is pruned up to here
	cutSigned  bool            // whether the end of the pruned part is signed
}

// noteSigningKey adds a recorded key.
func (s *signatureCheck) noteSigningKey(seq int64, key []byte) {
	if s.known == nil {
		s.known = map[string]bool{}
	}
	if key != nil {
		s.known[string(key)] = true
	}
	if s.signedFrom == 0 || seq < s.signedFrom {
		s.signedFrom = seq
	}
}

// noteCheckpoint adds a checkpoint with a valid signature.
func (s *signatureCheck) noteCheckpoint(c *SignedCheckpoint) {
	if s.seen == nil {
		s.seen = map[int64]bool{}
	}
	if c.Seq%checkpointEvery == 0 && !c.Pruned {
		s.seen[c.Seq] = true
	}
	if c.Pruned {
		s.cutSigned = true
		s.noteSigningKey(c.Seq, nil)
	}
}

// firstUnsigned returns the sequence number of the first entry without its required checkpoint, or 0.
func (s *signatureCheck) firstUnsigned(end int64) int64 {
	if s.signedFrom == 0 {
		return 0
	}
	for seq := (s.signedFrom/checkpointEvery + 1) * checkpointEvery; seq <= end; seq += checkpointEvery {
		if !s.seen[seq] {
			return seq
		}
	}
	return 0
}

// chainChecker checks the chain of a store, part by part.
type chainChecker struct {
	lastLink chainLink // the last entry
	record   int64
	entries  int64
	first    *Break
	spoolEnd chainLink // the last entry of the spool
	erasureCheck
	signatureCheck
	otherKeyCheckpoints []*SignedCheckpoint // signed with keys that must be recorded later
}

// checkPart checks the next part of the chain.
func (c *chainChecker) checkPart(p ChainPart) error {
	if p.Checkpoint != nil {
		return c.checkCheckpoint(p.Checkpoint)
	}
	before := c.lastLink
	c.lastLink = chainLink{p.Seq, p.Hash}
	if !p.Gone {
		c.entries++
	}
	if p.Pruned {
		c.prunedUpTo = p.Seq
	}
	switch next := before.seq + 1; {
	case p.First == next+1:
		return c.setBreak(next, "", "Entry %d is missing.", next)
	case p.First > next:
		return c.setBreak(next, "", "The entries from %d to %d are missing.", next, p.First-1)
	case p.First < next:
		return c.setBreak(p.First, p.recordID(), "Entry %d occurs a second time, after entry %d: it was inserted, or the log was started again.", p.First, before.seq)
	case !p.Gone && !isNextInChain(before.hash, p.Payload, p.Hash):
		return c.setBreak(p.Seq, p.recordID(), "Entry %d was changed, or is not the one that followed entry %d.", p.Seq, before.seq)
	case p.Record != 0 && p.Record < c.record:
		return c.setBreak(p.Seq, p.recordID(), "The record of entry %d is at another position in the records.", p.Seq)
	case p.Seq == c.spoolEnd.seq && p.Hash != c.spoolEnd.hash:
		return c.setBreak(p.Seq, p.recordID(), "Entry %d differs between the spool and the database.", p.Seq)
	}
	c.record = max(c.record, p.Record)
	if p.Gone {
		return nil
	}
	if !c.erasureCheck.collectErasures(p.Seq, p.Payload) {
		c.first = c.erasureCheck.first
		return errChainBroken
	}
	if key := parseSigningKeyRecord(p.Payload); key != nil {
		c.noteSigningKey(p.Seq, key)
	}
	return nil
}

// checkCheckpoint checks a checkpoint. It is called after the entry of the checkpoint was checked.
func (c *chainChecker) checkCheckpoint(p *SignedCheckpoint) error {
	switch {
	case p.Seq > c.lastLink.seq:
		return c.setBreak(c.lastLink.seq+1, "", "The entries after entry %d are missing. Entry %d existed and was signed.", c.lastLink.seq, p.Seq)
	case p.Seq == c.lastLink.seq && p.Hash != c.lastLink.hash:
		return c.setBreak(p.Seq, "", "Entry %d is not the one that was signed.", p.Seq)
	case !p.hasValidSignature():
		return c.setBreak(p.Seq, "", "The signature at entry %d does not match.", p.Seq)
	}
	if string(p.Key) != string(c.key) {
		c.otherKeyCheckpoints = append(c.otherKeyCheckpoints, p)
	}
	c.signatureCheck.noteCheckpoint(p)
	return nil
}

func (c *chainChecker) setBreak(seq int64, id, reason string, args ...any) error {
	c.first = &Break{ID: id, Seq: seq, Reason: fmt.Sprintf(reason, args...)}
	return errChainBroken
}

// checkEnd checks that the chain ends at the position that the store reports, and contains all entries of the spool.
func (c *chainChecker) checkEnd(at SpoolPosition, chain string) {
	switch {
	case c.lastLink.seq != at.Seq || c.lastLink.hash != at.Hash:
		_ = c.setBreak(min(c.lastLink.seq, at.Seq)+1, "", "The database ends with entry %d instead of the last written entry %d.", c.lastLink.seq, at.Seq)
	case c.lastLink.seq < c.spoolEnd.seq:
		_ = c.setBreak(c.lastLink.seq+1, "", "The database ends with entry %d, and the spool with entry %d.", c.lastLink.seq, c.spoolEnd.seq)
	case at.Seq > 0 && at.Chain != chain:
		_ = c.setBreak(at.Seq, "", "The spool was started again after entry %d.", at.Seq)
	case c.erasureCheck.firstUnrecordedErasure() != nil:
		c.first = c.erasureCheck.first
	case c.key != nil || len(c.otherKeyCheckpoints) > 0:
		c.checkSignatures(at.Seq)
	}
}

// checkSignatures checks that all required checkpoints exist and are signed with recorded keys.
func (c *chainChecker) checkSignatures(end int64) {
	for _, p := range c.otherKeyCheckpoints {
		if !c.known[string(p.Key)] {
			_ = c.setBreak(p.Seq, "", "Entry %d is signed with the key %x, which is not on record.", p.Seq, p.Key)
			return
		}
	}
	if c.prunedUpTo > 0 && !c.cutSigned && c.signedFrom == 0 {
		_ = c.setBreak(c.prunedUpTo, "", "The log begins after entry %d, and no signature confirms that earlier entries were pruned.", c.prunedUpTo)
	} else if seq := c.firstUnsigned(end); seq > 0 {
		_ = c.setBreak(seq, "", "Entry %d must be signed, but is not.", seq)
	}
}

// ChainReader reads the chain of one of the instances that share a store, as Store.EachChainPart does.
type ChainReader func(fn func(ChainPart) error) (records int64, end SpoolPosition, err error)

// verifyOtherInstances checks the chains of the other instances that share a store. It checks only the store, because
// their spools are on other machines. It returns the first break, with the name of the instance.
func verifyOtherInstances(ctx context.Context, others func(context.Context, func(name string, chain ChainReader) error) error) (records, entries int64, first *Break, err error) {
	err = others(ctx, func(name string, chain ChainReader) error {
		c := chainChecker{}
		n, end, err := chain(c.checkPart)
		if err != nil && !errors.Is(err, errChainBroken) {
			return err
		}
		if err == nil {
			c.checkEnd(end, end.Chain)
		}
		records, entries = records+n, entries+c.entries
		if c.first == nil {
			return nil
		}
		first = c.first
		first.Reason = "Of instance " + name + ": " + first.Reason
		return errChainBroken
	})
	if errors.Is(err, errChainBroken) {
		err = nil
	}
	return records, entries, first, err
}
