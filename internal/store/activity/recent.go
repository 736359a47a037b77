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

// recent is a second copy of the newest entries: of those at least that are not
// known to be on the disk of the spool. It is written after the spool is. When
// that disk dies they are written again from here, and when the process dies
// before it could, by the next one: the copy is in a file in memory, where there
// is such a thing, and that outlives both.
//
// It has two halves, each a header and lines as in a segment, which take turns.
// Only who writes to the spool uses it, but for safe.
type recent struct {
	halves [2][]byte
	at     int          // the half that is written to
	off    int          // where its next byte goes; 0 when it begins
	last   [2]int64     // the number of the last entry in each
	mark   []byte       // has the number of the entry up to which all is safe
	marked atomic.Int64 // what was written there last
	file   *os.File     // nil when it is in the memory of the process alone
	ends   *os.File     // outcomes that could not be written; see keepEnd
	lost   error        // why nothing more is written to it
	unmap  func() error
}

const (
	recentHalf = 4 << 20
	recentHead = 4096 // before the halves: the mark
	headerMax  = 512
)

// processRecent is a copy that ends with the process.
func processRecent() *recent { return &recent{mark: make([]byte, 8)} }

// recentOver is a copy in memory that lasts.
func recentOver(memory []byte, file, ends *os.File) *recent {
	r := &recent{
		mark: memory[:8], file: file, ends: ends,
		halves: [2][]byte{memory[recentHead : recentHead+recentHalf], memory[recentHead+recentHalf:]},
	}
	r.marked.Store(int64(binary.LittleEndian.Uint64(r.mark)))
	return r
}

// ready makes room for n bytes. It reports whether it could: entries after good
// are not given up.
func (r *recent) ready(n int, good int64) bool {
	if r.lost != nil {
		return false
	}
	if r.off+n <= recentHalf && (r.off > 0 || headerMax+n <= recentHalf) {
		return true
	}
	other := 1 - r.at
	if headerMax+n > recentHalf || r.last[other] > good {
		return false
	}
	r.at, r.off = other, 0
	return true
}

// put copies what was written. There must be room for it. from is the entry
// before it, target the last one of it.
func (r *recent) put(chain string, from, target link, at int64, waiting []blockRange) (err error) {
	if r.lost != nil {
		return nil
	}
	defer r.faults(debug.SetPanicOnFault(true), &err)
	if r.halves[r.at] == nil {
		r.halves[r.at] = make([]byte, recentHalf)
	}
	half := r.halves[r.at]
	if r.off == 0 {
		r.off = copy(half, appendHeader(nil, from.hash, header{Chain: chain, First: from.seq + 1, At: at}))
	}
	for _, w := range waiting {
		r.off += copy(half[r.off:], w.data)
	}
	r.last[r.at] = target.seq
	return nil
}

// skip notes that entries up to seq are not in it: what follows begins anew.
func (r *recent) skip(seq int64) {
	r.at, r.off = 1-r.at, 0
	r.last[r.at] = seq
}

// safe notes that entries up to seq need not be in it, whatever becomes of the
// spool: they are on the disk and in the store.
func (r *recent) safe(seq int64) {
	if r.lost == nil && r.marked.Swap(seq) != seq {
		defer r.faults(debug.SetPanicOnFault(true), new(error))
		binary.LittleEndian.PutUint64(r.mark, uint64(seq))
	}
}

// faults makes a fault in the memory an error: somebody may cut the file short,
// and that must not be the end of the process.
func (r *recent) faults(before bool, err *error) {
	debug.SetPanicOnFault(before)
	if fault := recover(); fault != nil {
		r.lost = fmt.Errorf("write the second copy of the newest entries: %v", fault)
		*err = r.lost
	}
}

// byteRange is a part of the chain: the lines that follow an entry.
type byteRange struct {
	chain string
	at    int64 // milliseconds that ids are already past
	prev  link
	last  link
	lines []byte
	rest  []byte // what was read behind it and does not continue it
}

// readByteRange reads what a half has. What an earlier turn has left behind its
// end does not continue the chain.
func readByteRange(half []byte) (s byteRange, ok bool) {
	line, rest, _ := bytes.Cut(half, []byte{'\n'})
	h, prev, ok := parseHeader(line)
	if !ok {
		return s, false
	}
	s = byteRange{chain: h.Chain, at: h.At, prev: link{h.First - 1, prev}, last: link{h.First - 1, prev}}
	n := 0
	for {
		line, _, whole := bytes.Cut(rest[n:], []byte{'\n'})
		hash, data, ok := splitLine(line)
		seq, at, placed := placeOf(data)
		if !whole || !ok || !placed || seq != s.last.seq+1 || !follows(s.last.hash, data, hash) {
			s.lines, s.rest = rest[:n], rest[n:]
			return s, true
		}
		s.last, s.at = link{seq, hash}, max(s.at, at)
		n += len(line) + 1
	}
}

// after is the part that follows the entry with number seq, or all of it when
// that is older.
func (s byteRange) after(seq int64) byteRange {
	for s.prev.seq < seq && len(s.lines) > 0 {
		line, rest, _ := bytes.Cut(s.lines, []byte{'\n'})
		s.prev.seq++
		hex.Decode(s.prev.hash[:], line[:hexLen]) // it was read before
		s.lines = rest
	}
	return s
}

// newest is what the copy has of the end of the chain, after the entry with
// number seq. ok is false when that cannot be read.
func (r *recent) newest(seq int64) (s byteRange, ok bool) {
	var err error
	func() {
		defer r.faults(debug.SetPanicOnFault(true), &err)
		s, ok = newest(r.halves, seq)
		s.lines = bytes.Clone(s.lines)
	}()
	return s, ok && err == nil
}

// newest joins the halves of a copy: what it has of the end of the chain. The
// entries up to seq are left out.
func newest(halves [2][]byte, seq int64) (s byteRange, ok bool) {
	s, ok = readByteRange(halves[0])
	other, okOther := readByteRange(halves[1])
	switch {
	case !ok:
		return other.after(seq), okOther
	case !okOther:
		return s.after(seq), true
	case other.last.seq < s.last.seq:
		s, other = other, s
	}
	if s.chain == other.chain && s.last == other.prev {
		other.lines = append(bytes.Clone(s.lines), other.lines...)
		other.prev = s.prev
	}
	return other.after(seq), true
}

// keptEnd is an outcome that could not be written.
type keptEnd struct {
	ID       string
	Of       int64
	Body     []byte
	Status   Status
	Duration int64
	Own      int64  `json:",omitempty"`
	Error    string `json:",omitempty"`
}

// keepEnd keeps an outcome beyond the end of the process.
func (r *recent) keepEnd(d *draft) error {
	if r.ends == nil {
		return nil
	}
	line, err := json.Marshal(keptEnd{d.id, d.of, d.body.data, d.facts.Status, d.facts.Duration, d.facts.Own, d.facts.ErrorCode})
	if err == nil {
		_, err = r.ends.Write(append(line, '\n'))
	}
	return err
}

// dropEnds forgets the outcomes: they are written.
func (r *recent) dropEnds() error {
	if r.ends == nil {
		return nil
	}
	return r.ends.Truncate(0)
}

// readEnds reads the outcomes that an earlier process has left.
func readEnds(f io.Reader) map[string]keptEnd {
	kept := map[string]keptEnd{}
	for in := json.NewDecoder(f); ; {
		var e keptEnd
		if in.Decode(&e) != nil { // the end, or what a kill has torn
			return kept
		}
		kept[e.ID] = e
	}
}

// clear forgets everything: it is on the disk. What follows begins anew.
func (r *recent) clear() (err error) {
	defer r.faults(debug.SetPanicOnFault(true), &err)
	r.at, r.off, r.last = 0, 0, [2]int64{}
	for _, half := range r.halves {
		clear(half[:min(1, len(half))]) // it begins with a header, or is empty
	}
	return nil
}

// close ends the copy. forget reports whether all is on the disk of the spool: nobody
// needs it any more.
func (r *recent) close(forget bool) error {
	var errs []error
	for _, f := range []*os.File{r.file, r.ends} {
		if f != nil && forget {
			errs = append(errs, os.Remove(f.Name()))
		}
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	if r.unmap != nil {
		r.lost = errClosed
		errs = append(errs, r.unmap())
	}
	return errors.Join(errs...)
}
