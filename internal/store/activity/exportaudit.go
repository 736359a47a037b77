package activity

import (
	"cmp"
	"fmt"
	"slices"
)

// ExportAudit checks the entries of an export without access to the log. Entries can be added in any order. Removed
// entries and checkpoints must be added before them.
type ExportAudit struct {
	Filtered bool   // the export does not contain all entries
	Key      []byte // the public key of the log; nil if the log is not signed
	End      SpoolPosition

	Entries  int64 // number of checked entries
	Linked   int64 // number of entries that were checked against the previous entry
	Withheld int64 // number of values that the export withholds; it has only their commitments
	Erased   int64 // number of values that a user erased

	hashBySeq           map[int64]Hash                     // hashes of entries whose next entry was not added yet
	waiting             map[int64]entryAwaitingPredecessor // entries whose previous entry was not added yet
	coveredRanges       []seqRange
	checkpointBySeq     map[int64]*SignedCheckpoint
	otherKeyCheckpoints []*SignedCheckpoint // checkpoints that were signed with another key than Key
	erasureCheck
	signatureCheck
}

// maxWaiting limits the entries of a filtered export that wait for their previous entry.
const maxWaiting = 1 << 16

// entryAwaitingPredecessor contains the chained text and the hash of an entry that was not checked against the previous
// entry yet.
type entryAwaitingPredecessor struct {
	sealed []byte
	hash   Hash
}

// seqRange is a range of consecutive sequence numbers.
type seqRange struct{ first, last int64 }

// NewExportAudit returns an audit of an export. key is the log's public key, and end is the end of the log.
func NewExportAudit(filtered bool, key []byte, end SpoolPosition) *ExportAudit {
	return &ExportAudit{
		Filtered: filtered, Key: key, End: end, hashBySeq: map[int64]Hash{0: {}}, waiting: map[int64]entryAwaitingPredecessor{}, checkpointBySeq: map[int64]*SignedCheckpoint{},
		signatureCheck: signatureCheck{key: key},
	}
}

func newChainBreak(seq int64, id, reason string, args ...any) *Break {
	return &Break{ID: id, Seq: seq, Reason: fmt.Sprintf(reason, args...)}
}

// AddGapOrCheckpoint adds a range of removed entries or a checkpoint.
func (a *ExportAudit) AddGapOrCheckpoint(p ChainPart) *Break {
	if c := p.Checkpoint; c != nil {
		switch {
		case c.Chain != a.End.Chain:
			return newChainBreak(c.Seq, "", "The signature at entry %d belongs to another log.", c.Seq)
		case !c.hasValidSignature():
			return newChainBreak(c.Seq, "", "The signature at entry %d does not match.", c.Seq)
		}
		if string(c.Key) != string(a.Key) {
			a.otherKeyCheckpoints = append(a.otherKeyCheckpoints, c)
		}
		if h, ok := a.hashBySeq[c.Seq]; ok && h != c.Hash {
			return newChainBreak(c.Seq, "", "Entry %d is not the one that was signed.", c.Seq)
		}
		a.checkpointBySeq[c.Seq] = c
		a.signatureCheck.noteCheckpoint(c)
		return nil
	}
	if p.Pruned {
		a.prunedUpTo = p.Seq
	}
	a.hashBySeq[p.Seq] = p.Hash
	a.addCoveredRange(p.First, p.Seq)
	return nil
}

func (a *ExportAudit) addCoveredRange(first, last int64) {
	for i := len(a.coveredRanges) - 1; i >= max(0, len(a.coveredRanges)-8); i-- {
		if c := &a.coveredRanges[i]; first <= c.last+1 && last >= c.first-1 {
			c.first, c.last = min(c.first, first), max(c.last, last)
			return
		}
	}
	a.coveredRanges = append(a.coveredRanges, seqRange{first, last})
}

// AddEntry adds an entry of the record with this ID.
func (a *ExportAudit) AddEntry(id string, e *ExportedEntry) *Break {
	a.addCoveredRange(e.Seq, e.Seq)
	if c := a.checkpointBySeq[e.Seq]; c != nil && c.Hash != e.Hash {
		return newChainBreak(e.Seq, id, "Entry %d is not the one that was signed.", e.Seq)
	}
	if h, ok := a.hashBySeq[e.Seq]; ok && h != e.Hash {
		return newChainBreak(e.Seq, id, "Entry %d differs from the entry that was removed.", e.Seq)
	}
	if e.Sealed != nil {
		if b := a.checkEntry(id, e); b != nil {
			return b
		}
		if a.Filtered && len(a.waiting) > maxWaiting {
			clear(a.waiting) // in a filtered export, the previous entry of most entries is missing
		}
		a.waiting[e.Seq] = entryAwaitingPredecessor{e.Sealed, e.Hash}
	}
	a.hashBySeq[e.Seq] = e.Hash
	if b := a.checkLink(e.Seq); b != nil {
		return b
	}
	return a.checkLink(e.Seq + 1)
}

// checkEntry checks an entry without comparing it with its neighbors.
func (a *ExportAudit) checkEntry(id string, e *ExportedEntry) *Break {
	a.Entries++
	left, ok := e.checkCommitments()
	if !ok || parseRecordID(e.Sealed) != id {
		return newChainBreak(e.Seq, id, "Entry %d was changed.", e.Seq)
	}
	a.Withheld += int64(left)
	payload := e.rebuildPayload()
	before := len(a.claimed)
	if !a.erasureCheck.collectErasures(e.Seq, payload) {
		return a.erasureCheck.first
	}
	a.Erased += int64(len(a.claimed) - before)
	if key := parseSigningKeyRecord(payload); key != nil {
		a.noteSigningKey(e.Seq, key)
	}
	return nil
}

// checkLink checks an entry against the previous entry, as soon as both were added.
func (a *ExportAudit) checkLink(seq int64) *Break {
	before, ok := a.hashBySeq[seq-1]
	e, waits := a.waiting[seq]
	if !ok || !waits {
		return nil
	}
	delete(a.waiting, seq)
	delete(a.hashBySeq, seq-1)
	if hashChained(before, e.sealed) != e.hash {
		return newChainBreak(seq, parseRecordID(e.sealed), "Entry %d was changed, or is not the one that followed entry %d.", seq, seq-1)
	}
	a.Linked++
	return nil
}

// FinishAudit returns the first break of the whole export. Call it after everything was added.
func (a *ExportAudit) FinishAudit() *Break {
	if h, ok := a.hashBySeq[a.End.Seq]; ok && h != a.End.Hash {
		return newChainBreak(a.End.Seq, "", "Entry %d is not the last entry of the export.", a.End.Seq)
	}
	for _, c := range a.otherKeyCheckpoints {
		if !a.Filtered && !a.known[string(c.Key)] {
			return newChainBreak(c.Seq, "", "Entry %d is signed with the key %x, which is not on record.", c.Seq, c.Key)
		}
	}
	if a.Filtered {
		return nil
	}
	slices.SortFunc(a.coveredRanges, func(x, y seqRange) int { return cmp.Compare(x.first, y.first) })
	next := int64(1)
	for _, c := range a.coveredRanges {
		if c.first > next {
			return newChainBreak(next, "", "The entries from %d to %d are missing.", next, c.first-1)
		}
		next = max(next, c.last+1)
	}
	switch seq := a.firstUnsigned(a.End.Seq); {
	case next <= a.End.Seq:
		return newChainBreak(next, "", "The entries after entry %d are missing: the log had %d entries.", next-1, a.End.Seq)
	case a.erasureCheck.firstUnrecordedErasure() != nil:
		return a.erasureCheck.first
	case a.Key != nil && a.prunedUpTo > 0 && !a.cutSigned && a.signedFrom == 0:
		return newChainBreak(a.prunedUpTo, "", "The log begins after entry %d, and no signature confirms that earlier entries were pruned.", a.prunedUpTo)
	case a.Key != nil && seq > 0:
		return newChainBreak(seq, "", "Entry %d must be signed, but is not.", seq)
	}
	return nil
}
