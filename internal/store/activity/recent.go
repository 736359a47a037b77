package activity

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"sync/atomic"
)

// recentCopy is a second copy of the newest entries: of those at least that are not
// known to be on the disk of the spool. It is written after the spool is. When
// that disk dies they are written again from here, and when the process dies
// before it could, by the next one: the copy is in a file in memory, where there
// is such a thing, and that outlives both.
//
// It has two halves, each a header and lines as in a segment, which take turns.
// Only who writes to the spool uses it, but for safe.
type recentCopy struct {
	halves       [2][]byte
	at           int          // the half that is written to
	off          int          // where its next byte goes; 0 when it begins
	last         [2]int64     // the number of the last entry in each
	safeMark     []byte       // has the number of the entry up to which all is safe
	lastMarked   atomic.Int64 // what was written there last
	file         *os.File     // nil when it is in the memory of the process alone
	outcomesFile *os.File     // outcomes that could not be written; see keepOutcome
	fault        error        // why nothing more is written to it
	unmap        func() error
}

const (
	copyHalfSize  = 4 << 20
	copyHeadSize  = 4096 // before the halves: the mark
	maxHeaderSize = 512
)

// newInProcessCopy is a copy that ends with the process.
func newInProcessCopy() *recentCopy { return &recentCopy{safeMark: make([]byte, 8)} }

// newMappedCopy is a copy in memory that lasts.
func newMappedCopy(memory []byte, file, ends *os.File) *recentCopy {
	r := &recentCopy{
		safeMark: memory[:8], file: file, outcomesFile: ends,
		halves: [2][]byte{memory[copyHeadSize : copyHeadSize+copyHalfSize], memory[copyHeadSize+copyHalfSize:]},
	}
	r.lastMarked.Store(int64(binary.LittleEndian.Uint64(r.safeMark)))
	return r
}

// makeRoom makes room for n bytes. It reports whether it could: entries after good
// are not given up.
func (r *recentCopy) makeRoom(n int, good int64) bool {
	if r.fault != nil {
		return false
	}
	if r.off+n <= copyHalfSize && (r.off > 0 || maxHeaderSize+n <= copyHalfSize) {
		return true
	}
	other := 1 - r.at
	if maxHeaderSize+n > copyHalfSize || r.last[other] > good {
		return false
	}
	r.at, r.off = other, 0
	return true
}

// writeHex copies what was written. There must be room for it. from is the entry
// before it, target the last one of it.
func (r *recentCopy) appendRanges(chain string, from, target chainLink, at int64, waiting []blockRange) (err error) {
	if r.fault != nil {
		return nil
	}
	defer r.recoverFault(debug.SetPanicOnFault(true), &err)
	if r.halves[r.at] == nil {
		r.halves[r.at] = make([]byte, copyHalfSize)
	}
	half := r.halves[r.at]
	if r.off == 0 {
		r.off = copy(half, appendSegmentHeader(nil, from.hash, segmentHeader{Chain: chain, First: from.seq + 1, At: at}))
	}
	for _, w := range waiting {
		r.off += copy(half[r.off:], w.data)
	}
	r.last[r.at] = target.seq
	return nil
}

// skipEntriesUpTo notes that entries up to seq are not in it: what follows begins anew.
func (r *recentCopy) skipEntriesUpTo(seq int64) {
	r.at, r.off = 1-r.at, 0
	r.last[r.at] = seq
}

// markSafe notes that entries up to seq need not be in it, whatever becomes of the
// spool: they are on the disk and in the store.
func (r *recentCopy) markSafe(seq int64) {
	if r.fault == nil && r.lastMarked.Swap(seq) != seq {
		defer r.recoverFault(debug.SetPanicOnFault(true), new(error))
		binary.LittleEndian.PutUint64(r.safeMark, uint64(seq))
	}
}

// recoverFault makes a fault in the memory an error: somebody may cut the file short,
// and that must not be the end of the process.
func (r *recentCopy) recoverFault(before bool, err *error) {
	debug.SetPanicOnFault(before)
	if fault := recover(); fault != nil {
		r.fault = fmt.Errorf("write the second copy of the newest entries: %v", fault)
		*err = r.fault
	}
}

// chainLines is a part of the chain: the lines that follow an entry.
type chainLines struct {
	chain string
	at    int64 // milliseconds that ids are already past
	prev  chainLink
	last  chainLink
	lines []byte
	rest  []byte // what was read behind it and does not continue it
}

// parseChainLines reads what a half has. What an earlier turn has left behind its
// end does not continue the chain.
func parseChainLines(half []byte) (s chainLines, ok bool) {
	line, rest, _ := bytes.Cut(half, []byte{'\n'})
	h, prev, ok := parseSegmentHeader(line)
	if !ok {
		return s, false
	}
	s = chainLines{chain: h.Chain, at: h.At, prev: chainLink{h.First - 1, prev}, last: chainLink{h.First - 1, prev}}
	n := 0
	for {
		line, _, whole := bytes.Cut(rest[n:], []byte{'\n'})
		hash, data, ok := splitSpoolLine(line)
		seq, at, placed := parseSeqAndTime(data)
		if !whole || !ok || !placed || seq != s.last.seq+1 || !isNextInChain(s.last.hash, data, hash) {
			s.lines, s.rest = rest[:n], rest[n:]
			return s, true
		}
		s.last, s.at = chainLink{seq, hash}, max(s.at, at)
		n += len(line) + 1
	}
}

// newULIDGeneratorAfter is the part that follows the entry with number seq, or all of it when
// that is older.
func (s chainLines) dropUpTo(seq int64) chainLines {
	for s.prev.seq < seq && len(s.lines) > 0 {
		line, rest, _ := bytes.Cut(s.lines, []byte{'\n'})
		s.prev.seq++
		hex.Decode(s.prev.hash[:], line[:hexLen]) // it was read before
		s.lines = rest
	}
	return s
}

// joinCopyHalves is what the copy has of the end of the chain, after the entry with
// number seq. ok is false when that cannot be read.
func (r *recentCopy) newestLines(seq int64) (s chainLines, ok bool) {
	var err error
	func() {
		defer r.recoverFault(debug.SetPanicOnFault(true), &err)
		s, ok = joinCopyHalves(r.halves, seq)
		s.lines = bytes.Clone(s.lines)
	}()
	return s, ok && err == nil
}

// joinCopyHalves joins the halves of a copy: what it has of the end of the chain. The
// entries up to seq are left out.
func joinCopyHalves(halves [2][]byte, seq int64) (s chainLines, ok bool) {
	s, ok = parseChainLines(halves[0])
	other, okOther := parseChainLines(halves[1])
	switch {
	case !ok:
		return other.dropUpTo(seq), okOther
	case !okOther:
		return s.dropUpTo(seq), true
	case other.last.seq < s.last.seq:
		s, other = other, s
	}
	if s.chain == other.chain && s.last == other.prev {
		other.lines = append(bytes.Clone(s.lines), other.lines...)
		other.prev = s.prev
	}
	return other.dropUpTo(seq), true
}

// keptOutcome is an outcome that could not be written.
type keptOutcome struct {
	ID       string
	Of       int64
	Body     []byte
	Status   Status
	Duration int64
	Own      int64  `json:",omitempty"`
	Error    string `json:",omitempty"`
}

// keepOutcome keeps an outcome beyond the end of the process.
func (r *recentCopy) keepOutcome(d *entryDraft) error {
	if r.outcomesFile == nil {
		return nil
	}
	line, err := json.Marshal(keptOutcome{d.id, d.of, d.body.data, d.facts.Status, d.facts.Duration, d.facts.OwnTime, d.facts.ErrorCode})
	if err == nil {
		_, err = r.outcomesFile.Write(append(line, '\n'))
	}
	return err
}

// clearKeptOutcomes forgets the outcomes: they are written.
func (r *recentCopy) clearKeptOutcomes() error {
	if r.outcomesFile == nil {
		return nil
	}
	return r.outcomesFile.Truncate(0)
}

// readKeptOutcomes reads the outcomes that an earlier process has left.
func readKeptOutcomes(f io.Reader) map[string]keptOutcome {
	kept := map[string]keptOutcome{}
	for in := json.NewDecoder(f); ; {
		var e keptOutcome
		if in.Decode(&e) != nil { // the end, or what a kill has torn
			return kept
		}
		kept[e.ID] = e
	}
}

// clear forgets everything: it is on the disk. What follows begins anew.
func (r *recentCopy) clear() (err error) {
	defer r.recoverFault(debug.SetPanicOnFault(true), &err)
	r.at, r.off, r.last = 0, 0, [2]int64{}
	for _, half := range r.halves {
		clear(half[:min(1, len(half))]) // it begins with a header, or is empty
	}
	return nil
}

// close ends the copy. forget reports whether all is on the disk of the spool: nobody
// needs it any more.
func (r *recentCopy) close(forget bool) error {
	var errs []error
	for _, f := range []*os.File{r.file, r.outcomesFile} {
		if f != nil && forget {
			errs = append(errs, os.Remove(f.Name()))
		}
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	if r.unmap != nil {
		r.fault = errClosed
		errs = append(errs, r.unmap())
	}
	return errors.Join(errs...)
}
