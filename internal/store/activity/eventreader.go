package activity

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// ChainPosition is the sequence number and the hash of an entry of the chain. The zero value is the position before the
// first entry.
type ChainPosition struct {
	Seq  int64
	Hash Hash
}

// positionHashLen is the number of bytes of the hash in a position. They distinguish entries of different chains with
// the same sequence number.
const positionHashLen = 8

func (p ChainPosition) isSame(other ChainPosition) bool {
	return p.Seq == other.Seq && [positionHashLen]byte(p.Hash[:]) == [positionHashLen]byte(other.Hash[:])
}

// AppendText appends the position as a text, such as 17-0f3a9c5d2b714e68, to dst.
func (p ChainPosition) AppendText(dst []byte) []byte {
	dst = strconv.AppendInt(dst, p.Seq, 10)
	return hex.AppendEncode(append(dst, '-'), p.Hash[:positionHashLen])
}

// ParseChainPosition parses the text that AppendText produces. The hash of the result is shortened, but long enough to
// find the entry.
func ParseChainPosition(text string) (p ChainPosition, ok bool) {
	number, hash, _ := strings.Cut(text, "-")
	seq, err := strconv.ParseInt(number, 10, 64)
	if err != nil || seq < 0 || len(hash) != 2*positionHashLen {
		return p, false
	}
	p.Seq = seq
	_, err = hex.Decode(p.Hash[:], []byte(hash))
	return p, err == nil
}

// EntryEvent describes an entry of the chain for followers of the log. It does not contain arguments and responses.
type EntryEvent struct {
	ChainPosition
	Kind  EntryKind
	ID    string      // of the record
	Facts RecordFacts // of the record after this entry; unset for KindRepeat
}

// errGap means that the entries after a position are unavailable: the position is too old or belongs to another chain,
// or the following entries are damaged.
var errGap = errors.New("the log does not contain the following entry")

// maxEventsPerRead is the maximum number of events that one read returns.
const maxEventsPerRead = 128

// LastPosition returns the position of the last durable entry.
func (l *Log) LastPosition() ChainPosition {
	l.spool.mu.Lock()
	defer l.spool.mu.Unlock()
	return ChainPosition{l.spool.durable.seq, l.spool.durable.hash}
}

// Follow returns a reader of the entries that are appended after this call. The spool keeps entries that the reader has
// not read in memory, within a limit. The channel receives a value when entries are appended. Only one follower can
// exist at a time, and the caller must close it. Appending never waits for the follower.
func (l *Log) Follow() (r *EventReader, appended <-chan struct{}) {
	told := newWakeSignal()
	r = l.NewEventReader(l.spool.setFollower(told))
	r.follows, r.verified = true, true
	return r, told
}

// setFollower sets the signal that is raised at each write, or removes it if told is nil. It returns the position of
// the last durable entry.
func (s *spool) setFollower(told wakeSignal) ChainPosition {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.followerWake, s.followed = told, s.durable.seq
	return ChainPosition{s.durable.seq, s.durable.hash}
}

// EventReader reads the chain from a position, entry by entry. It reads from memory if the next entry is still
// available there, otherwise from the files. It is not safe for concurrent use.
type EventReader struct {
	log      *Log
	position ChainPosition
	verified bool                   // whether position is known to be in the chain
	follows  bool                   // whether Follow created the reader
	entries  []Entry                // a reusable buffer
	begun    map[string]RecordFacts // records that began in the files and have not ended in them

	snapshot spoolSnapshot // the snapshot of the files, while the reader reads from them
	segment  int           // index of the current file in snapshot.segments
	file     *os.File
	lines    *bufio.Scanner
	first    bool // whether the next line is the first line of the segment
}

// NewEventReader returns a reader of the entries after a position. The caller must close it.
func (l *Log) NewEventReader(p ChainPosition) *EventReader {
	return &EventReader{log: l, position: p, begun: map[string]RecordFacts{}}
}

// Position returns the position of the last event that was read.
func (r *EventReader) Position() ChainPosition { return r.position }

// Close closes the reader.
func (r *EventReader) Close() {
	if r.follows {
		r.log.spool.setFollower(nil)
	}
	r.closeFile()
}

func (r *EventReader) closeFile() {
	if r.file != nil {
		_ = r.file.Close() // the file was opened only for reading
		r.file = nil
	}
}

// ReadEvents appends the next events to dst and advances the reader. If it appends none, there are no more events until
// entries are appended. Every error wraps errGap. After an error, the reader is unusable.
func (r *EventReader) ReadEvents(ctx context.Context, dst []EntryEvent) ([]EntryEvent, error) {
	if r.file == nil {
		steps, done, err := r.readFromMemory(dst)
		if done || err != nil {
			return steps, err
		}
		if err := r.openSegmentAtPosition(); err != nil {
			return dst, err
		}
	}
	return r.readFromFiles(ctx, dst)
}

// readFromMemory reads the next events from the memory of the spool. done is false if memory does not contain the next
// event, or if the position is not verified yet.
func (r *EventReader) readFromMemory(dst []EntryEvent) (steps []EntryEvent, done bool, err error) {
	s := r.log.spool
	s.mu.Lock()
	durable := ChainPosition{s.durable.seq, s.durable.hash}
	if r.verified && r.position.Seq < durable.Seq {
		r.entries = s.queue.copyEntriesAfter(r.entries[:0], r.position.Seq, maxEventsPerRead)
	}
	if n := len(r.entries); r.follows && n > 0 {
		s.followed = r.entries[n-1].Seq
	}
	s.mu.Unlock()
	entries := r.entries
	defer clear(entries)
	r.entries = entries[:0]
	switch {
	case r.position.isSame(durable):
		r.position, r.verified = durable, true
		return dst, true, nil
	case r.position.Seq >= durable.Seq:
		return dst, true, errGap
	case len(entries) == 0 || entries[0].Seq != r.position.Seq+1:
		return dst, false, nil
	}
	for i := range entries {
		e := &entries[i]
		dst = append(dst, EntryEvent{ChainPosition{e.Seq, e.Hash}, e.Kind, e.ID, e.Facts})
		r.position = ChainPosition{e.Seq, e.Hash}
	}
	clear(r.begun)
	return dst, true, nil
}

// openSegmentAtPosition opens the segment that contains the next entry, or the entry at the position itself.
func (r *EventReader) openSegmentAtPosition() error {
	r.snapshot = r.log.spool.snapshot()
	r.segment = r.snapshot.countSegmentsUpTo(r.position.Seq+1) - 2
	return r.openNextSegment()
}

func (r *EventReader) openNextSegment() error {
	r.closeFile()
	if r.segment++; r.segment < 0 || r.segment >= len(r.snapshot.segments) {
		return errGap // no segment contains the next entry
	}
	seg := r.snapshot.segments[r.segment]
	f, err := os.Open(seg.path)
	if err != nil {
		return fmt.Errorf("%w: %w", errGap, err)
	}
	r.file, r.first = f, true
	r.lines = bufio.NewScanner(io.LimitReader(f, seg.size))
	r.lines.Buffer(make([]byte, 64<<10), 64<<20)
	return nil
}

// readFromFiles continues reading in the files, up to the end of the snapshot.
func (r *EventReader) readFromFiles(ctx context.Context, dst []EntryEvent) ([]EntryEvent, error) {
	for n := len(dst); len(dst)-n < maxEventsPerRead && r.file != nil; {
		var err error
		if !r.lines.Scan() {
			if err = r.lines.Err(); err == nil {
				err = r.openNextSegment()
			}
		} else if dst, err = r.readLine(ctx, dst, r.lines.Bytes()); err == nil && r.verified && r.position.Seq >= r.snapshot.end.Seq {
			r.closeFile()
		}
		if err != nil {
			r.closeFile()
			return dst, toGapError(err)
		}
	}
	return dst, nil
}

// toGapError returns an error that wraps errGap and err.
func toGapError(err error) error {
	if errors.Is(err, errGap) {
		return err
	}
	return fmt.Errorf("%w: %w", errGap, err)
}

// readLine processes one line. The line is the header of a segment, an entry that was already read, the next entry, or
// an entry that was never acknowledged.
func (r *EventReader) readLine(ctx context.Context, dst []EntryEvent, line []byte) ([]EntryEvent, error) {
	if r.first {
		r.first = false
		if h, prev, ok := parseSegmentHeader(line); ok {
			return dst, r.checkLink(ChainPosition{h.First - 1, prev})
		}
	}
	seq := parseLineSeq(line)
	if seq == 0 || seq < r.position.Seq {
		return dst, nil // often applies to most lines of a segment
	}
	hash, data, ok := splitSpoolLine(line)
	switch {
	case !ok, seq >= r.snapshot.firstSeqOfNextSegment(r.snapshot.segments[r.segment].first), seq > r.snapshot.end.Seq:
		return dst, nil
	case seq <= r.position.Seq || !r.verified:
		return dst, r.checkLink(ChainPosition{seq, hash})
	case seq != r.position.Seq+1:
		return dst, errGap
	}
	e, err := decodeSpoolEntry(hash, data)
	if err != nil {
		return dst, toGapError(err)
	}
	r.position = ChainPosition{seq, hash}
	return append(dst, EntryEvent{r.position, e.Kind, e.ID, r.recordFacts(ctx, &e)}), nil
}

// checkLink checks that the position of the reader is in the chain. It does so when p reaches that position.
func (r *EventReader) checkLink(p ChainPosition) error {
	switch {
	case p.Seq < r.position.Seq:
		return nil
	case !p.isSame(r.position):
		return errGap
	}
	r.position, r.verified = p, true
	return nil
}

// parseLineSeq parses the sequence number of an entry at the offset at which appendPayloadPrefix writes it. It returns
// 0 if the line has none.
func parseLineSeq(line []byte) (seq int64) {
	const before = hexLen + len(` {"id":"`) + ulidLen + len(`","seq":`)
	for _, c := range line[min(before, len(line)):] {
		if c < '0' || c > '9' {
			break
		}
		seq = 10*seq + int64(c-'0')
	}
	return seq
}

// recordFacts returns the facts of the record after an entry. The outcome of a record in the files lacks most facts.
// recordFacts takes them from the beginning of the record. If the reader has not read the beginning, it comes from the
// store.
func (r *EventReader) recordFacts(ctx context.Context, e *Entry) RecordFacts {
	switch e.Kind {
	case KindBegin:
		if len(r.begun) < 4*maxEventsPerRead {
			r.begun[e.ID] = e.Facts
		}
		return e.Facts
	case KindEnd:
	default:
		return e.Facts
	}
	facts, ok := r.begun[e.ID]
	delete(r.begun, e.ID)
	if !ok {
		facts = RecordFacts{Type: ToolCall} // known even if the beginning of the record is lost
		if record, err := r.log.Get(ctx, e.ID); err == nil {
			facts = NewRecordFacts(&record)
		}
	}
	return facts.WithOutcome(&e.Facts)
}
