package activity

import (
	"cmp"
	"fmt"
	"slices"
)

// Audit checks entries that come in any order, as an export has them, with nothing but
// themselves. What is gone and what is signed is told first.
type Audit struct {
	Filtered bool   // not all entries come
	Key      []byte // that the log signs with; nil: it is not signed
	End      Position

	Entries  int64 // that were checked
	Linked   int64 // of which the one before is known
	Withheld int64 // values of which there is the commitment alone
	Erased   int64 // values that a person has erased

	hashes   map[int64]Hash         // of entries whose next one is to come
	waiting  map[int64]waitingEntry // entries whose one before is to come
	covered  []stretchOf
	marked   map[int64]*Checkpoint
	unproven []*Checkpoint // by another key
	erasures
	signatures
}

// maxWaiting is how many entries of a filtered export are kept until the one before comes.
const maxWaiting = 1 << 16

// waitingEntry is what is chained of an entry.
type waitingEntry struct {
	sealed []byte
	hash   Hash
}

// stretchOf is some entries in a row.
type stretchOf struct{ first, last int64 }

// NewAudit makes an Audit of what a log says of itself.
func NewAudit(filtered bool, key []byte, end Position) *Audit {
	return &Audit{
		Filtered: filtered, Key: key, End: end, hashes: map[int64]Hash{0: {}}, waiting: map[int64]waitingEntry{}, marked: map[int64]*Checkpoint{},
		signatures: signatures{key: key},
	}
}

func breakAt(seq int64, id, reason string, args ...any) *Break {
	return &Break{ID: id, Seq: seq, Reason: fmt.Sprintf(reason, args...)}
}

// Mark takes what is gone, or a signed place.
func (a *Audit) Mark(p ChainPart) *Break {
	if c := p.Checkpoint; c != nil {
		switch {
		case c.Chain != a.End.Chain:
			return breakAt(c.Seq, "", "The signature at entry %d is of another log.", c.Seq)
		case !c.Signed():
			return breakAt(c.Seq, "", "The signature at entry %d does not fit.", c.Seq)
		}
		if string(c.Key) != string(a.Key) {
			a.unproven = append(a.unproven, c)
		}
		if h, ok := a.hashes[c.Seq]; ok && h != c.Hash {
			return breakAt(c.Seq, "", "Entry %d is not the one that was signed.", c.Seq)
		}
		a.marked[c.Seq] = c
		a.signatures.add(c)
		return nil
	}
	if p.Pruned {
		a.cut = p.Seq
	}
	a.hashes[p.Seq] = p.Hash
	a.cover(p.First, p.Seq)
	return nil
}

func (a *Audit) cover(first, last int64) {
	for i := len(a.covered) - 1; i >= max(0, len(a.covered)-8); i-- {
		if c := &a.covered[i]; first <= c.last+1 && last >= c.first-1 {
			c.first, c.last = min(c.first, first), max(c.last, last)
			return
		}
	}
	a.covered = append(a.covered, stretchOf{first, last})
}

// Add takes an entry of the record with an id.
func (a *Audit) Add(id string, e *Exported) *Break {
	a.cover(e.Seq, e.Seq)
	if c := a.marked[e.Seq]; c != nil && c.Hash != e.Hash {
		return breakAt(e.Seq, id, "Entry %d is not the one that was signed.", e.Seq)
	}
	if h, ok := a.hashes[e.Seq]; ok && h != e.Hash {
		return breakAt(e.Seq, id, "Entry %d is not the one that was there when it was removed.", e.Seq)
	}
	if e.Sealed != nil {
		if b := a.look(id, e); b != nil {
			return b
		}
		if a.Filtered && len(a.waiting) > maxWaiting {
			clear(a.waiting) // of most the one before does not come
		}
		a.waiting[e.Seq] = waitingEntry{e.Sealed, e.Hash}
	}
	a.hashes[e.Seq] = e.Hash
	if b := a.link(e.Seq); b != nil {
		return b
	}
	return a.link(e.Seq + 1)
}

// look checks what an entry says by itself.
func (a *Audit) look(id string, e *Exported) *Break {
	a.Entries++
	left, ok := e.opened()
	if !ok || idOf(e.Sealed) != id {
		return breakAt(e.Seq, id, "Entry %d was changed.", e.Seq)
	}
	a.Withheld += int64(left)
	payload := e.payload()
	before := len(a.said)
	if !a.erasures.add(e.Seq, payload) {
		return a.erasures.first
	}
	a.Erased += int64(len(a.said) - before)
	if key := keyOf(payload); key != nil {
		a.told(e.Seq, key)
	}
	return nil
}

// link checks an entry against the one before, when both have come.
func (a *Audit) link(seq int64) *Break {
	before, ok := a.hashes[seq-1]
	e, waits := a.waiting[seq]
	if !ok || !waits {
		return nil
	}
	delete(a.waiting, seq)
	delete(a.hashes, seq-1)
	if chainHash(before, e.sealed) != e.hash {
		return breakAt(seq, idOf(e.sealed), "Entry %d was changed, or is not the one that followed entry %d.", seq, seq-1)
	}
	a.Linked++
	return nil
}

// Finish returns the first break of the whole, when everything has come.
func (a *Audit) Finish() *Break {
	if h, ok := a.hashes[a.End.Seq]; ok && h != a.End.Hash {
		return breakAt(a.End.Seq, "", "Entry %d is not the one that the export ends with.", a.End.Seq)
	}
	for _, c := range a.unproven {
		if !a.Filtered && !a.known[string(c.Key)] {
			return breakAt(c.Seq, "", "Entry %d is signed with the key %x, which is not on record.", c.Seq, c.Key)
		}
	}
	if a.Filtered {
		return nil
	}
	slices.SortFunc(a.covered, func(x, y stretchOf) int { return cmp.Compare(x.first, y.first) })
	next := int64(1)
	for _, c := range a.covered {
		if c.first > next {
			return breakAt(next, "", "The entries from %d to %d are missing.", next, c.first-1)
		}
		next = max(next, c.last+1)
	}
	switch seq := a.missing(a.End.Seq); {
	case next <= a.End.Seq:
		return breakAt(next, "", "What follows entry %d is missing: the log had %d.", next-1, a.End.Seq)
	case a.erasures.end() != nil:
		return a.erasures.first
	case a.Key != nil && a.cut > 0 && !a.named && a.from == 0:
		return breakAt(a.cut, "", "The log begins after entry %d, and nobody has signed that what was before was pruned.", a.cut)
	case a.Key != nil && seq > 0:
		return breakAt(seq, "", "Entry %d should be signed, and is not.", seq)
	}
	return nil
}
