package activity

import (
	"cmp"
	"fmt"
	"slices"
)

// ExportAudit checks entries that come in any order, as an export has them, with nothing but
// themselves. What is gone and what is signed is told first.
type ExportAudit struct {
	Filtered bool   // not all entries come
	Key      []byte // that the log signs with; nil: it is not signed
	End      SpoolPosition

	Entries  int64 // that were checked
	Linked   int64 // of which the one before is known
	Withheld int64 // values of which there is the commitment alone
	Erased   int64 // values that a person has erased

	hashBySeq           map[int64]Hash          // of entries whose next one is to come
	waiting             map[int64]unlinkedEntry // entries whose one before is to come
	coveredRanges       []seqRange
	checkpointBySeq     map[int64]*Checkpoint
	otherKeyCheckpoints []*Checkpoint // by another key
	erasureCheck
	signatureCheck
}

// maxWaiting is how many entries of a filtered export are kept until the one before comes.
const maxWaiting = 1 << 16

// unlinkedEntry is what is chained of an entry.
type unlinkedEntry struct {
	sealed []byte
	hash   Hash
}

// seqRange is some entries in a row.
type seqRange struct{ first, last int64 }

// NewExportAudit makes an Audit of what a log says of itself.
func NewExportAudit(filtered bool, key []byte, end SpoolPosition) *ExportAudit {
	return &ExportAudit{
		Filtered: filtered, Key: key, End: end, hashBySeq: map[int64]Hash{0: {}}, waiting: map[int64]unlinkedEntry{}, checkpointBySeq: map[int64]*Checkpoint{},
		signatureCheck: signatureCheck{key: key},
	}
}

func newBreak(seq int64, id, reason string, args ...any) *Break {
	return &Break{ID: id, Seq: seq, Reason: fmt.Sprintf(reason, args...)}
}

// AddMark takes what is gone, or a signed place.
func (a *ExportAudit) AddMark(p ChainPart) *Break {
	if c := p.Checkpoint; c != nil {
		switch {
		case c.Chain != a.End.Chain:
			return newBreak(c.Seq, "", "The signature at entry %d is of another log.", c.Seq)
		case !c.HasValidSignature():
			return newBreak(c.Seq, "", "The signature at entry %d does not fit.", c.Seq)
		}
		if string(c.Key) != string(a.Key) {
			a.otherKeyCheckpoints = append(a.otherKeyCheckpoints, c)
		}
		if h, ok := a.hashBySeq[c.Seq]; ok && h != c.Hash {
			return newBreak(c.Seq, "", "Entry %d is not the one that was signed.", c.Seq)
		}
		a.checkpointBySeq[c.Seq] = c
		a.signatureCheck.noteCheckpoint(c)
		return nil
	}
	if p.Pruned {
		a.prunedUpTo = p.Seq
	}
	a.hashBySeq[p.Seq] = p.Hash
	a.addCovered(p.First, p.Seq)
	return nil
}

func (a *ExportAudit) addCovered(first, last int64) {
	for i := len(a.coveredRanges) - 1; i >= max(0, len(a.coveredRanges)-8); i-- {
		if c := &a.coveredRanges[i]; first <= c.last+1 && last >= c.first-1 {
			c.first, c.last = min(c.first, first), max(c.last, last)
			return
		}
	}
	a.coveredRanges = append(a.coveredRanges, seqRange{first, last})
}

// AddEntry takes an entry of the record with an id.
func (a *ExportAudit) AddEntry(id string, e *ExportedEntry) *Break {
	a.addCovered(e.Seq, e.Seq)
	if c := a.checkpointBySeq[e.Seq]; c != nil && c.Hash != e.Hash {
		return newBreak(e.Seq, id, "Entry %d is not the one that was signed.", e.Seq)
	}
	if h, ok := a.hashBySeq[e.Seq]; ok && h != e.Hash {
		return newBreak(e.Seq, id, "Entry %d is not the one that was there when it was removed.", e.Seq)
	}
	if e.Sealed != nil {
		if b := a.checkEntry(id, e); b != nil {
			return b
		}
		if a.Filtered && len(a.waiting) > maxWaiting {
			clear(a.waiting) // of most the one before does not come
		}
		a.waiting[e.Seq] = unlinkedEntry{e.Sealed, e.Hash}
	}
	a.hashBySeq[e.Seq] = e.Hash
	if b := a.checkLink(e.Seq); b != nil {
		return b
	}
	return a.checkLink(e.Seq + 1)
}

// checkEntry checks what an entry says by itself.
func (a *ExportAudit) checkEntry(id string, e *ExportedEntry) *Break {
	a.Entries++
	left, ok := e.checkCommitments()
	if !ok || parseRecordID(e.Sealed) != id {
		return newBreak(e.Seq, id, "Entry %d was changed.", e.Seq)
	}
	a.Withheld += int64(left)
	payload := e.rebuildPayload()
	before := len(a.claimed)
	if !a.erasureCheck.checkEntry(e.Seq, payload) {
		return a.erasureCheck.first
	}
	a.Erased += int64(len(a.claimed) - before)
	if key := parseSigningKeyRecord(payload); key != nil {
		a.noteKey(e.Seq, key)
	}
	return nil
}

// chainLink checks an entry against the one before, when both have come.
func (a *ExportAudit) checkLink(seq int64) *Break {
	before, ok := a.hashBySeq[seq-1]
	e, waits := a.waiting[seq]
	if !ok || !waits {
		return nil
	}
	delete(a.waiting, seq)
	delete(a.hashBySeq, seq-1)
	if hashChained(before, e.sealed) != e.hash {
		return newBreak(seq, parseRecordID(e.sealed), "Entry %d was changed, or is not the one that followed entry %d.", seq, seq-1)
	}
	a.Linked++
	return nil
}

// FinishAudit returns the first break of the whole, when everything has come.
func (a *ExportAudit) FinishAudit() *Break {
	if h, ok := a.hashBySeq[a.End.Seq]; ok && h != a.End.Hash {
		return newBreak(a.End.Seq, "", "Entry %d is not the one that the export ends with.", a.End.Seq)
	}
	for _, c := range a.otherKeyCheckpoints {
		if !a.Filtered && !a.known[string(c.Key)] {
			return newBreak(c.Seq, "", "Entry %d is signed with the key %x, which is not on record.", c.Seq, c.Key)
		}
	}
	if a.Filtered {
		return nil
	}
	slices.SortFunc(a.coveredRanges, func(x, y seqRange) int { return cmp.Compare(x.first, y.first) })
	next := int64(1)
	for _, c := range a.coveredRanges {
		if c.first > next {
			return newBreak(next, "", "The entries from %d to %d are missing.", next, c.first-1)
		}
		next = max(next, c.last+1)
	}
	switch seq := a.firstUnsigned(a.End.Seq); {
	case next <= a.End.Seq:
		return newBreak(next, "", "What follows entry %d is missing: the log had %d.", next-1, a.End.Seq)
	case a.erasureCheck.firstUnrecorded() != nil:
		return a.erasureCheck.first
	case a.Key != nil && a.prunedUpTo > 0 && !a.cutSigned && a.signedFrom == 0:
		return newBreak(a.prunedUpTo, "", "The log begins after entry %d, and nobody has signed that what was before was pruned.", a.prunedUpTo)
	case a.Key != nil && seq > 0:
		return newBreak(seq, "", "Entry %d should be signed, and is not.", seq)
	}
	return nil
}
