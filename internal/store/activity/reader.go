package activity

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"sort"
	"time"
)

// mark is the end of what is durable, and the files that hold it.
type mark struct {
	end      Position
	good     int64 // the last entry that is known to be on the disk
	segments []segment
	file     spoolFile // of the last segment; nil until something is written
}

func (s *spool) mark() mark {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := mark{
		end:      Position{Chain: s.chain, Seq: s.durable.seq, Hash: s.durable.hash},
		good:     s.good.seq,
		file:     s.file,
		segments: make([]segment, len(s.segments)),
	}
	for i, seg := range s.segments {
		m.segments[i] = *seg
		m.end.Segment, m.end.Offset = seg.first, seg.size
	}
	return m
}

// after returns the number of the first entry in the segment after one. Entries
// from there on in the segment itself were never acknowledged, since the write had
// failed and could not be taken back, or were written again in the next one.
func (m *mark) after(first int64) int64 {
	if i := m.upTo(first); i < len(m.segments) {
		return m.segments[i].first
	}
	return math.MaxInt64
}

// upTo returns how many segments begin with an entry or before it.
func (m *mark) upTo(seq int64) int {
	return sort.Search(len(m.segments), func(i int) bool { return m.segments[i].first > seq })
}

// spoolReader reads entries from the files, from a position up to a mark. What
// cannot be read it skips, keeps aside and tells: one bad sector must not hide
// the entries behind it. That holds for what was on the disk. What is newer, and
// is not there, stands in the second copy, from which the spool is made well: it
// is an error until then.
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

	missing int64 // entries that no segment has, though they come first
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

// resumes reports whether the position is a link of the spool, as it should be.
func (r *spoolReader) resumes() bool {
	seg, ok := r.segment(r.at.Segment)
	if !ok || r.at.Offset > seg.size || r.at.Seq >= r.until.after(r.at.Segment) {
		return false
	}
	seg.size = r.at.Offset
	t, ok, err := tailOf(&seg)
	return err == nil && ok && t.size == r.at.Offset && t.hash == r.at.Hash
}

// rewind goes back to the beginning of the segment where the first entry to read
// must be, or of the oldest.
func (r *spoolReader) rewind() {
	segs := r.until.segments
	first := min(r.skip, r.keep) + 1
	r.at = Position{Chain: r.until.end.Chain, Seq: r.skip}
	if i := max(r.until.upTo(first)-1, 0); i < len(segs) {
		r.at.Segment = segs[i].first
		r.missing = max(0, segs[i].first-first)
	}
}

func (r *spoolReader) segment(first int64) (segment, bool) {
	i := r.until.upTo(first) - 1
	if i < 0 || r.until.segments[i].first != first {
		return segment{}, false
	}
	return r.until.segments[i], true
}

// next returns the next entry, or io.EOF at the mark.
func (r *spoolReader) next() (Entry, error) {
	for {
		if r.file == nil {
			if err := r.openSegment(); err != nil {
				return Entry{}, err
			}
		}
		var line []byte
		err := io.EOF // what follows in the segment is the rest of a failed write, or stands again in the next one
		if !r.known || r.at.Seq+1 < r.until.after(r.at.Segment) {
			line, err = r.line()
		}
		if err == io.EOF {
			if err := r.nextSegment(); err != io.EOF && err != nil {
				return Entry{}, err
			} else if err == io.EOF {
				return Entry{}, cmp.Or(r.absent(r.until.end.Seq), err)
			}
			continue
		}
		if err != nil {
			return Entry{}, err
		}
		e, ok, err := r.entry(line)
		if ok || err != nil {
			return e, err
		}
	}
}

// errNotOnDisk is a part of the spool that was written and is not there, before
// anybody knew that it is on the disk.
var errNotOnDisk = errors.New("the newest entries of the spool are not on the disk")

// absent is an error when an entry up to that number was not there, and was not
// known to be on the disk.
func (r *spoolReader) absent(upTo int64) error {
	if upTo > r.at.Seq && upTo > r.until.good {
		return errNotOnDisk
	}
	return nil
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
	i := r.until.upTo(r.at.Segment)
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
		return nil, cmp.Or(r.keepAside(line), err)
	}
	return line, err
}

// entry looks at one line. Headers, bad lines and entries that the store has
// are no entries.
func (r *spoolReader) entry(line []byte) (e Entry, ok bool, err error) {
	body := bytes.TrimSuffix(line, []byte{'\n'})
	if r.at.Offset == int64(len(line)) {
		if h, prev, ok := parseHeader(body); ok {
			r.expect(prev, h.First)
			r.at.Hash, r.known = prev, true
			return e, false, nil
		}
	}
	h, data, ok := splitLine(body)
	if !ok {
		return e, false, r.keepAside(line)
	}
	linked := r.known && follows(r.at.Hash, data, h)
	if e, err = decodeEntry(h, data, linked); err != nil {
		return e, false, r.keepAside(line)
	}
	if e.Seq >= r.until.after(r.at.Segment) {
		return e, false, nil // the next segment has it, or it was never acknowledged
	}
	if err := r.absent(e.Seq - 1); err != nil {
		return e, false, err
	}
	inStore := e.Seq <= r.skip && e.Seq <= r.keep
	if !inStore && r.known && !linked {
		r.broken(e.Seq)
	}
	r.at.Seq, r.at.Hash, r.known = e.Seq, h, true
	e.segment, e.offset = r.at.Segment, r.at.Offset
	return e, !inStore, nil
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
func (r *spoolReader) keepAside(line []byte) error {
	if err := r.absent(r.at.Seq + 1); err != nil {
		return err
	}
	name := fmt.Sprintf("%0*d%s.damaged-%d", segmentDigits, r.at.Segment, segmentSuffix, r.at.Offset-int64(len(line)))
	kept := "are kept in " + name
	if err := os.WriteFile(filepath.Join(r.dir, name), line, 0o600); err != nil {
		kept = "could not be kept aside"
	}
	r.note(fmt.Sprintf("%d bytes of the spool are no entry; they %s.", len(line), kept))
	return nil
}

// missed is an error as long as entries that the store lacks may come back with a
// disk that is away. After that it is told that they are lost.
func (s *spool) missed(r *spoolReader) error {
	s.mu.Lock()
	gone := s.goneAt
	s.mu.Unlock()
	switch {
	case r.missing == 0 || gone.IsZero():
		return nil
	case time.Since(gone) < awayTime:
		return fmt.Errorf("%d entries of the spool are missing since it was deleted, or its disk was taken away", r.missing)
	}
	r.note(fmt.Sprintf("%d entries of the spool were deleted before they were in the database.", r.missing))
	return nil
}

// awayTime is how long entries are waited for that were there, and are not.
const awayTime = 30 * time.Second
