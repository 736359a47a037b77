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

// spoolSnapshot describes the durable entries at one time: their end, and the files that contain them.
type spoolSnapshot struct {
	end      SpoolPosition
	synced   int64 // the last entry that is known to be on the disk
	segments []segment
	file     spoolFile // open file of the last segment; nil until something is written
}

// snapshot returns the current end of the durable entries, and the segments.
func (s *spool) snapshot() spoolSnapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := spoolSnapshot{
		end:      SpoolPosition{Chain: s.chain, Seq: s.durable.seq, Hash: s.durable.hash},
		synced:   s.synced.seq,
		file:     s.file,
		segments: make([]segment, len(s.segments)),
	}
	for i, seg := range s.segments {
		m.segments[i] = *seg
		m.end.Segment, m.end.Offset = seg.first, seg.size
	}
	return m
}

// firstSeqOfNextSegment returns the sequence number of the first entry in the segment after the segment that begins
// with first. Entries with this number or a higher one in the earlier segment must be ignored: a failed write left
// them, or they were written again in the next segment.
func (m *spoolSnapshot) firstSeqOfNextSegment(first int64) int64 {
	if i := m.countSegmentsUpTo(first); i < len(m.segments) {
		return m.segments[i].first
	}
	return math.MaxInt64
}

// countSegmentsUpTo returns the number of segments that begin at or before the entry seq.
func (m *spoolSnapshot) countSegmentsUpTo(seq int64) int {
	return sort.Search(len(m.segments), func(i int) bool { return m.segments[i].first > seq })
}

// spoolReader reads entries from the files, from a position up to the end of a snapshot. It skips unreadable bytes,
// saves a copy of them and adds a note, because one bad sector must not hide the entries after it. Newer entries that
// are not known to be on the disk are an exception. If they are missing, reading fails until the spool is repaired from
// the second copy.
type spoolReader struct {
	dir       string
	snapshot  spoolSnapshot
	position  SpoolPosition
	hashKnown bool // whether position.Hash is the hash of the previous entry
	notes     []string

	file           *os.File
	buf            *bufio.Reader
	storedUpTo     int64 // the store has the entries up to this number
	neverSkipAfter int64 // entries after this number are always read

	missing int64 // number of entries before the first segment that no segment contains
}

const (
	readBuffer = 256 << 10
	maxNotes   = 16
)

// newSpoolReader returns a reader that continues after pos. The reader skips entries up to pos.Seq, except for those
// after keep.
func (s *spool) newSpoolReader(pos SpoolPosition, keep int64) *spoolReader {
	r := &spoolReader{dir: s.dir, snapshot: s.snapshot(), position: pos, storedUpTo: pos.Seq, neverSkipAfter: keep}
	if r.hashKnown = r.canResume(); !r.hashKnown {
		r.rewindToSegmentOfFirstEntry()
	}
	return r
}

// canResume reports whether the entry at the position exists in the spool.
func (r *spoolReader) canResume() bool {
	seg, ok := r.findSegment(r.position.Segment)
	if !ok || r.position.Offset > seg.size || r.position.Seq >= r.snapshot.firstSeqOfNextSegment(r.position.Segment) {
		return false
	}
	seg.size = r.position.Offset
	t, ok, err := readSegmentTail(&seg)
	return err == nil && ok && t.size == r.position.Offset && t.hash == r.position.Hash
}

// rewindToSegmentOfFirstEntry moves to the beginning of the segment that must contain the first entry to read, or of
// the oldest segment.
func (r *spoolReader) rewindToSegmentOfFirstEntry() {
	segs := r.snapshot.segments
	first := min(r.storedUpTo, r.neverSkipAfter) + 1
	r.position = SpoolPosition{Chain: r.snapshot.end.Chain, Seq: r.storedUpTo}
	if i := max(r.snapshot.countSegmentsUpTo(first)-1, 0); i < len(segs) {
		r.position.Segment = segs[i].first
		r.missing = max(0, segs[i].first-first)
	}
}

func (r *spoolReader) findSegment(first int64) (segment, bool) {
	i := r.snapshot.countSegmentsUpTo(first) - 1
	if i < 0 || r.snapshot.segments[i].first != first {
		return segment{}, false
	}
	return r.snapshot.segments[i], true
}

// readEntry returns the next entry, or io.EOF at the end of the snapshot.
func (r *spoolReader) readEntry() (Entry, error) {
	for {
		if r.file == nil {
			if err := r.openSegment(); err != nil {
				return Entry{}, err
			}
		}
		var line []byte
		err := io.EOF // a failed write left the rest of the segment, or the next segment repeats it
		if !r.hashKnown || r.position.Seq+1 < r.snapshot.firstSeqOfNextSegment(r.position.Segment) {
			line, err = r.readLine()
		}
		if err == io.EOF {
			if err := r.advanceSegment(); err != io.EOF && err != nil {
				return Entry{}, err
			} else if err == io.EOF {
				return Entry{}, cmp.Or(r.checkOnDisk(r.snapshot.end.Seq), err)
			}
			continue
		}
		if err != nil {
			return Entry{}, err
		}
		e, ok, err := r.parseLine(line)
		if ok || err != nil {
			return e, err
		}
	}
}

// errNotOnDisk means that a part of the spool was written, but is missing and was never known to be on the disk.
var errNotOnDisk = errors.New("the newest entries of the spool are missing on the disk")

// checkOnDisk returns an error if an entry up to upTo is missing and was not known to be on the disk.
func (r *spoolReader) checkOnDisk(upTo int64) error {
	if upTo > r.position.Seq && upTo > r.snapshot.synced {
		return errNotOnDisk
	}
	return nil
}

func (r *spoolReader) openSegment() error {
	seg, ok := r.findSegment(r.position.Segment)
	if !ok {
		return io.EOF // nothing was written yet
	}
	f, err := os.Open(seg.path)
	if err != nil {
		return fmt.Errorf("read the spool: %w", err)
	}
	if _, err := f.Seek(r.position.Offset, io.SeekStart); err != nil {
		return errors.Join(err, f.Close())
	}
	r.file = f
	if r.buf == nil {
		r.buf = bufio.NewReaderSize(nil, readBuffer)
	}
	r.buf.Reset(io.LimitReader(f, seg.size-r.position.Offset))
	return nil
}

func (r *spoolReader) advanceSegment() error {
	segs := r.snapshot.segments
	i := r.snapshot.countSegmentsUpTo(r.position.Segment)
	if i == len(segs) {
		return io.EOF
	}
	err := r.close()
	r.position.Segment, r.position.Offset = segs[i].first, 0
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

// readLine reads up to the next newline or the end of the segment.
func (r *spoolReader) readLine() ([]byte, error) {
	line, err := r.buf.ReadBytes('\n')
	r.position.Offset += int64(len(line))
	if err == io.EOF && len(line) > 0 {
		return nil, cmp.Or(r.saveDamagedBytes(line), err)
	}
	return line, err
}

// parseLine parses one line. ok is false for headers, damaged lines and entries that the store already has.
func (r *spoolReader) parseLine(line []byte) (e Entry, ok bool, err error) {
	body := bytes.TrimSuffix(line, []byte{'\n'})
	if r.position.Offset == int64(len(line)) {
		if h, prev, ok := parseSegmentHeader(body); ok {
			r.checkHeader(prev, h.First)
			r.position.Hash, r.hashKnown = prev, true
			return e, false, nil
		}
	}
	h, data, ok := splitSpoolLine(body)
	if !ok {
		return e, false, r.saveDamagedBytes(line)
	}
	linked := r.hashKnown && isNextInChain(r.position.Hash, data, h)
	if e, err = decodeSpoolEntry(h, data); err != nil {
		return e, false, r.saveDamagedBytes(line)
	}
	if e.Seq >= r.snapshot.firstSeqOfNextSegment(r.position.Segment) {
		return e, false, nil // the entry is in the next segment, or was never acknowledged
	}
	if err := r.checkOnDisk(e.Seq - 1); err != nil {
		return e, false, err
	}
	inStore := e.Seq <= r.storedUpTo && e.Seq <= r.neverSkipAfter
	if !inStore && r.hashKnown && !linked {
		r.noteBrokenChain(e.Seq)
	}
	r.position.Seq, r.position.Hash, r.hashKnown = e.Seq, h, true
	e.segment, e.offset = r.position.Segment, r.position.Offset
	return e, !inStore, nil
}

// checkHeader checks that the header of a segment continues the previous segment.
func (r *spoolReader) checkHeader(prev Hash, first int64) {
	if r.hashKnown && r.position.Hash != prev {
		r.noteBrokenChain(first)
	}
}

func (r *spoolReader) noteBrokenChain(seq int64) {
	r.addNote(fmt.Sprintf("The chain of the spool is broken before entry %d.", seq))
}

func (r *spoolReader) addNote(text string) {
	if len(r.notes) < maxNotes {
		r.notes = append(r.notes, text)
	}
}

// saveDamagedBytes writes damaged bytes into a separate file.
func (r *spoolReader) saveDamagedBytes(line []byte) error {
	if err := r.checkOnDisk(r.position.Seq + 1); err != nil {
		return err
	}
	name := fmt.Sprintf("%0*d%s.damaged-%d", segmentDigits, r.position.Segment, segmentSuffix, r.position.Offset-int64(len(line)))
	kept := "are kept in " + name
	if err := os.WriteFile(filepath.Join(r.dir, name), line, 0o600); err != nil {
		kept = "could not be stored separately"
	}
	r.addNote(fmt.Sprintf("%d bytes of the spool are not an entry; they %s.", len(line), kept))
	return nil
}

// checkMissingEntries returns an error while entries that the store lacks may return with a removed disk. After
// missingGrace, it adds a note that they are lost.
func (s *spool) checkMissingEntries(r *spoolReader) error {
	s.mu.Lock()
	gone := s.deletedAt
	s.mu.Unlock()
	switch {
	case r.missing == 0 || gone.IsZero():
		return nil
	case time.Since(gone) < missingGrace:
		return fmt.Errorf("%d entries of the spool are missing because it was deleted, or its disk was removed", r.missing)
	}
	r.addNote(fmt.Sprintf("%d entries of the spool were deleted before they were in the database.", r.missing))
	return nil
}

// missingGrace is how long the spool waits for missing entries.
const missingGrace = 30 * time.Second
