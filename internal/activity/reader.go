package activity

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"sort"
)

// Position is how far the entries of the spool are in the store: the entry that
// was projected last, and where it ends in the files.
type Position struct {
	Chain   string
	Seq     int64
	Hash    Hash
	Segment int64 // the number of the first entry of the segment
	Offset  int64
}

// mark is the end of what is durable, and the files that hold it.
type mark struct {
	end      Position
	segments []segment
}

func (s *spool) mark() mark {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := mark{
		end:      Position{Chain: s.chain, Seq: s.durable.seq, Hash: s.durable.hash},
		segments: make([]segment, len(s.segments)),
	}
	for i, seg := range s.segments {
		m.segments[i] = *seg
		m.end.Segment, m.end.Offset = seg.first, seg.size
	}
	return m
}

// after gives the number of the first entry in the segment after one. Entries
// from there on in the segment itself were never acknowledged: the write had
// failed, and could not be taken back.
func (m *mark) after(first int64) int64 {
	for _, s := range m.segments {
		if s.first > first {
			return s.first
		}
	}
	return math.MaxInt64
}

// spoolReader reads entries from the files, from a position up to a mark. What
// cannot be read it skips, keeps aside and tells: one bad sector must not hide
// the entries behind it.
type spoolReader struct {
	dir   string
	until mark
	at    Position
	known bool // at.Hash is that of the entry before
	notes []string

	file *os.File
	buf  *bufio.Reader
	skip int64 // entries that are numbered up to here are in the store
	keep int64 // but not those after here
}

const (
	readBuffer = 256 << 10
	maxNotes   = 16
)

// readFrom makes a reader that goes on after pos. Entries that are numbered up
// to pos.Seq are left out, unless they are after keep.
func (s *spool) readFrom(pos Position, keep int64) *spoolReader {
	r := &spoolReader{dir: s.dir, until: s.mark(), at: pos, skip: pos.Seq, keep: keep}
	if r.known = r.resumes(); !r.known {
		r.rewind()
	}
	return r
}

// resumes says whether the position is a link of the spool, as it should be.
func (r *spoolReader) resumes() bool {
	seg, ok := r.segment(r.at.Segment)
	if !ok || r.at.Offset > seg.size {
		return false
	}
	f, err := os.Open(seg.path)
	if err != nil {
		return false
	}
	defer f.Close()
	t, ok, err := findTail(f, r.at.Offset)
	return err == nil && ok && t.size == r.at.Offset && t.hash == r.at.Hash
}

// rewind goes back to the beginning of the segment where the first entry to read
// must be, or of the oldest.
func (r *spoolReader) rewind() {
	segs := r.until.segments
	first := min(r.skip, r.keep) + 1
	i := sort.Search(len(segs), func(i int) bool { return segs[i].first > first })
	r.at = Position{Chain: r.until.end.Chain, Seq: r.skip}
	if i = max(i-1, 0); i < len(segs) {
		r.at.Segment = segs[i].first
	}
}

func (r *spoolReader) segment(first int64) (segment, bool) {
	for _, s := range r.until.segments {
		if s.first == first {
			return s, true
		}
	}
	return segment{}, false
}

// next gives the next entry, or io.EOF at the mark.
func (r *spoolReader) next() (Entry, error) {
	for {
		if r.file == nil {
			if err := r.openSegment(); err != nil {
				return Entry{}, err
			}
		}
		line, err := r.line()
		if err == io.EOF {
			if err := r.nextSegment(); err != nil {
				return Entry{}, err
			}
			continue
		}
		if err != nil {
			return Entry{}, err
		}
		if e, ok := r.entry(line); ok {
			return e, nil
		}
	}
}

func (r *spoolReader) openSegment() error {
	seg, ok := r.segment(r.at.Segment)
	if !ok {
		return io.EOF // nothing was ever written
	}
	f, err := os.Open(seg.path)
	if err != nil {
		return fmt.Errorf("read the spool: %w", err)
	}
	if _, err := f.Seek(r.at.Offset, io.SeekStart); err != nil {
		return errors.Join(err, f.Close())
	}
	r.file = f
	if r.buf == nil {
		r.buf = bufio.NewReaderSize(nil, readBuffer)
	}
	r.buf.Reset(io.LimitReader(f, seg.size-r.at.Offset))
	return nil
}

func (r *spoolReader) nextSegment() error {
	segs := r.until.segments
	i := sort.Search(len(segs), func(i int) bool { return segs[i].first > r.at.Segment })
	if i == len(segs) {
		return io.EOF
	}
	err := r.close()
	r.at.Segment, r.at.Offset = segs[i].first, 0
	return err
}

func (r *spoolReader) close() error {
	if r.file == nil {
		return nil
	}
	err := r.file.Close()
	r.file = nil
	return err
}

// line reads up to the next newline, or the end of the segment, and moves on.
func (r *spoolReader) line() ([]byte, error) {
	line, err := r.buf.ReadBytes('\n')
	r.at.Offset += int64(len(line))
	if err == io.EOF && len(line) > 0 {
		r.keepAside(line)
		return nil, io.EOF
	}
	return line, err
}

// entry looks at one line. Headers, bad lines and entries that the store has
// are no entries.
func (r *spoolReader) entry(line []byte) (Entry, bool) {
	body := bytes.TrimSuffix(line, []byte{'\n'})
	if r.at.Offset == int64(len(line)) {
		if h, prev, ok := parseHeader(body); ok {
			r.expect(prev, h.First)
			r.at.Hash, r.known = prev, true
			return Entry{}, false
		}
	}
	h, data, ok := splitLine(body)
	if !ok {
		r.keepAside(line)
		return Entry{}, false
	}
	linked := r.known && chainHash(r.at.Hash, data) == h
	e, err := decodeEntry(h, data, linked)
	if err != nil || e.Seq >= r.until.after(r.at.Segment) {
		r.keepAside(line)
		return Entry{}, false
	}
	inStore := e.Seq <= r.skip && e.Seq <= r.keep
	if !inStore && r.known && !linked {
		r.broken(e.Seq)
	}
	r.at.Seq, r.at.Hash, r.known = e.Seq, h, true
	e.segment, e.offset = r.at.Segment, r.at.Offset
	return e, !inStore
}

// expect checks that the header of a segment continues the one before.
func (r *spoolReader) expect(prev Hash, first int64) {
	if r.known && r.at.Hash != prev {
		r.broken(first)
	}
}

func (r *spoolReader) broken(seq int64) {
	r.note(fmt.Sprintf("The chain of the spool is broken before entry %d.", seq))
}

func (r *spoolReader) note(text string) {
	if len(r.notes) < maxNotes {
		r.notes = append(r.notes, text)
	}
}

// keepAside puts bytes that are no entry into a file of their own.
func (r *spoolReader) keepAside(line []byte) {
	name := fmt.Sprintf("%0*d%s.damaged-%d", segmentDigits, r.at.Segment, segmentSuffix, r.at.Offset-int64(len(line)))
	kept := "are kept in " + name
	if err := os.WriteFile(filepath.Join(r.dir, name), line, 0o600); err != nil {
		kept = "could not be kept aside"
	}
	r.note(fmt.Sprintf("%d bytes of the spool are no entry; they %s.", len(line), kept))
}
