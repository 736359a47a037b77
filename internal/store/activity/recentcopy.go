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

	"mcpproxy/internal/ondisk"
)

// recentCopy is a second copy of the newest entries. It contains at least those that are not known to be on the disk of
// the spool. It is written after the spool. If that disk fails, the entries are written again from this copy, by this
// process or by the next one. On systems that support it, the copy is a file in memory that survives the process.
//
// The copy has two halves that are used alternately, each with a header and lines like a segment. Only the writer of
// the spool uses the copy, except for markSafe.
type recentCopy struct {
	halves       [2][]byte
	at           int                // index of the current half
	off          int                // offset of the next byte in the current half; 0 if it is empty
	last         [2]int64           // sequence number of the last entry in each half
	safeMark     []byte             // sequence number up to which all entries are stored safely elsewhere
	lastMarked   atomic.Int64       // the value that was last written to safeMark
	file         *ondisk.LockedFile // nil if the copy is only in the memory of the process
	outcomesFile *ondisk.LockedFile // outcomes that could not be written; see backUpOutcome
	fault        error              // the error after which nothing more is written to the copy
	unmap        func() error
}

const (
	copyHalfSize  = 4 << 20
	copyHeadSize  = 4096 // size of the head before the halves; the head contains safeMark
	maxHeaderSize = 512
)

// newInProcessCopy returns a copy in the memory of the process, which does not survive the process.
func newInProcessCopy() *recentCopy { return &recentCopy{safeMark: make([]byte, 8)} }

// newMappedCopy returns a copy in mapped memory that survives the process.
func newMappedCopy(memory []byte, file, ends *ondisk.LockedFile) *recentCopy {
	r := &recentCopy{
		safeMark: memory[:8], file: file, outcomesFile: ends,
		halves: [2][]byte{memory[copyHeadSize : copyHeadSize+copyHalfSize], memory[copyHeadSize+copyHalfSize:]},
	}
	r.lastMarked.Store(int64(binary.LittleEndian.Uint64(r.safeMark)))
	return r
}

// makeRoom makes room for n bytes and reports whether it succeeded. It never overwrites entries after the sequence
// number good.
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

// appendRanges appends ranges of lines to the copy. The caller must have made room for them. from is the entry before
// the ranges, and target is their last entry.
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

// skipEntriesUpTo records that the copy lacks entries up to seq, and switches to the other half.
func (r *recentCopy) skipEntriesUpTo(seq int64) {
	r.at, r.off = 1-r.at, 0
	r.last[r.at] = seq
}

// markSafe records that the entries up to seq are both on the disk and in the store, so that the copy does not need
// them.
func (r *recentCopy) markSafe(seq int64) {
	if r.fault == nil && r.lastMarked.Swap(seq) != seq {
		defer r.recoverFault(debug.SetPanicOnFault(true), new(error))
		binary.LittleEndian.PutUint64(r.safeMark, uint64(seq))
	}
}

// recoverFault converts a memory fault into an error. Such a fault occurs if another process truncates the file. It
// must not end this process.
func (r *recentCopy) recoverFault(before bool, err *error) {
	debug.SetPanicOnFault(before)
	if fault := recover(); fault != nil {
		r.fault = fmt.Errorf("write the second copy of the newest entries: %v", fault)
		*err = r.fault
	}
}

// chainLines is a part of the chain: the lines after the entry prev.
type chainLines struct {
	chain string
	at    int64 // the latest time of an ID, in milliseconds
	prev  chainLink
	last  chainLink
	lines []byte
	rest  []byte // the bytes after the lines, which do not continue the chain
}

// parseChainLines parses the lines in a half of the copy, or in a segment. It stops at bytes that remain from an
// earlier use, because they do not continue the chain.
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

// dropUpTo returns the lines after the entry seq. If prev is already after seq, it returns all lines.
func (s chainLines) dropUpTo(seq int64) chainLines {
	for s.prev.seq < seq && len(s.lines) > 0 {
		line, rest, _ := bytes.Cut(s.lines, []byte{'\n'})
		s.prev.seq++
		hex.Decode(s.prev.hash[:], line[:hexLen]) // cannot fail, because the line was parsed before
		s.lines = rest
	}
	return s
}

// newestLines returns the lines of the copy after the entry seq. ok is false if the copy is unreadable.
func (r *recentCopy) newestLines(seq int64) (s chainLines, ok bool) {
	var err error
	func() {
		defer r.recoverFault(debug.SetPanicOnFault(true), &err)
		s, ok = joinCopyHalves(r.halves, seq)
		s.lines = bytes.Clone(s.lines)
	}()
	return s, ok && err == nil
}

// joinCopyHalves returns the newest lines of the two halves, without the entries up to seq.
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

// backedUpOutcome is an outcome that could not be written to the spool.
type backedUpOutcome struct {
	ID       string
	Of       int64
	Body     []byte
	Status   Status
	Duration int64
	Own      int64  `json:",omitempty"`
	Error    string `json:",omitempty"`
}

// backUpOutcome stores an outcome outside of the spool, in a file that survives the process.
func (r *recentCopy) backUpOutcome(d *entryDraft) error {
	if r.outcomesFile == nil {
		return nil
	}
	line, err := json.Marshal(backedUpOutcome{d.id, d.of, d.body.data, d.facts.Status, d.facts.Duration, d.facts.OwnTime, d.facts.ErrorCode})
	if err == nil {
		_, err = r.outcomesFile.Write(append(line, '\n'))
	}
	return err
}

// clearOutcomeBackup deletes the stored outcomes after they were written.
func (r *recentCopy) clearOutcomeBackup() error {
	if r.outcomesFile == nil {
		return nil
	}
	return r.outcomesFile.Truncate(0)
}

// readOutcomeBackup reads the outcomes that an earlier process stored.
func readOutcomeBackup(f io.Reader) map[string]backedUpOutcome {
	kept := map[string]backedUpOutcome{}
	for in := json.NewDecoder(f); ; {
		var e backedUpOutcome
		if in.Decode(&e) != nil { // the end of the file, or an incomplete line
			return kept
		}
		kept[e.ID] = e
	}
}

// clear empties the copy. Call it only when everything is on the disk.
func (r *recentCopy) clear() (err error) {
	defer r.recoverFault(debug.SetPanicOnFault(true), &err)
	r.at, r.off, r.last = 0, 0, [2]int64{}
	for _, half := range r.halves {
		clear(half[:min(1, len(half))]) // a half without a header is empty
	}
	return nil
}

// close closes the copy. If forget is true, it also deletes the files of the copy, because everything is on the disk of
// the spool.
func (r *recentCopy) close(forget bool) error {
	var errs []error
	if r.unmap != nil { // before another process can lock the file
		r.fault = errClosed
		errs = append(errs, r.unmap())
	}
	for _, f := range []*ondisk.LockedFile{r.file, r.outcomesFile} {
		if f != nil && forget {
			errs = append(errs, os.Remove(f.Name()))
		}
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}
