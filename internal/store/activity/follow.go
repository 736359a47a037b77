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

// ChainPosition is a place in the chain: the number of an entry, and its hash. The zero
// value is the beginning, before the first entry.
type ChainPosition struct {
	Seq  int64
	Hash Hash
}

// positionHashLen is how much of the hash tells an entry from that of another chain which
// has the same number.
const positionHashLen = 8

func (p ChainPosition) isSame(other ChainPosition) bool {
	return p.Seq == other.Seq && [positionHashLen]byte(p.Hash[:]) == [positionHashLen]byte(other.Hash[:])
}

// AppendJSON appends the place as a text, such as 17-0f3a9c5d2b714e68, to dst.
func (p ChainPosition) AppendText(dst []byte) []byte {
	dst = strconv.AppendInt(dst, p.Seq, 10)
	return hex.AppendEncode(append(dst, '-'), p.Hash[:positionHashLen])
}

// ParseChainPosition reads what Append wrote: as much of the place as it takes to find it.
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

// EntryEvent is an entry of the chain for those who follow the log: what happened,
// without arguments and responses.
type EntryEvent struct {
	ChainPosition
	Kind  EntryKind
	ID    string      // of the record
	Facts RecordFacts // of the record as it is by then; empty for a KindRepeat
}

// errGap is a place whose next entry cannot be had: it is too old, or of another
// chain, or what follows is damaged.
var errGap = errors.New("the log does not have what follows")

// maxEventsPerRead is how many steps are read at a time.
const maxEventsPerRead = 128

// ChainPosition returns the place of the last entry that is durable.
func (l *Log) LastPosition() ChainPosition {
	l.spool.mu.Lock()
	defer l.spool.mu.Unlock()
	return ChainPosition{l.spool.durable.seq, l.spool.durable.hash}
}

// Follow makes a Reader of what is appended from now on, for which the spool keeps
// in memory what it has not read yet, as far as there is room. The channel has a
// value when entries were appended after the last one was taken. There is one at a
// time, until it is closed; who appends never waits for it.
func (l *Log) Follow() (r *EventReader, appended <-chan struct{}) {
	told := newWakeSignal()
	r = l.NewEventReader(l.spool.setFollower(told))
	r.follows, r.verified = true, true
	return r, told
}

// setFollower has a signal raised at each write; nil is nobody's. It returns the end.
func (s *spool) setFollower(told wakeSignal) ChainPosition {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.followerWake, s.followed = told, s.durable.seq
	return ChainPosition{s.durable.seq, s.durable.hash}
}

// EventReader reads the chain from a place on, entry by entry: from memory what is
// still there, else from the files. It is not safe for concurrent use.
type EventReader struct {
	log      *Log
	position ChainPosition
	verified bool                   // at is a link of the chain
	follows  bool                   // see Follow
	entries  []Entry                // room
	begun    map[string]RecordFacts // records that began in the files, and have not ended there

	snapshot spoolSnapshot // of the files, while it reads from them
	segment  int           // of until that is read
	file     *os.File
	lines    *bufio.Scanner
	first    bool // the next line is the first of the segment
}

// NewEventReader makes a Reader of what follows a place. It is to be closed.
func (l *Log) NewEventReader(p ChainPosition) *EventReader {
	return &EventReader{log: l, position: p, begun: map[string]RecordFacts{}}
}

// Position returns the place of the last step that was read.
func (r *EventReader) Position() ChainPosition { return r.position }

// Close ends the reading.
func (r *EventReader) Close() {
	if r.follows {
		r.log.spool.setFollower(nil)
	}
	r.closeFile()
}

func (r *EventReader) closeFile() {
	if r.file != nil {
		_ = r.file.Close() // it was only read
		r.file = nil
	}
}

// ReadEvents appends the steps that follow to dst, some of them at a time, and moves on
// to the last. None is the end, until more is appended. After an error, which is
// errGap, it reads nothing any more.
func (r *EventReader) ReadEvents(ctx context.Context, dst []EntryEvent) ([]EntryEvent, error) {
	if r.file == nil {
		steps, done, err := r.readFromMemory(dst)
		if done || err != nil {
			return steps, err
		}
		if err := r.openFirstSegment(); err != nil {
			return dst, err
		}
	}
	return r.readFromFiles(ctx, dst)
}

// readFromMemory reads what the spool has in memory. It is not done when that does
// not have the next step, or it is not known whether that is the next.
func (r *EventReader) readFromMemory(dst []EntryEvent) (steps []EntryEvent, done bool, err error) {
	s := r.log.spool
	s.mu.Lock()
	durable := ChainPosition{s.durable.seq, s.durable.hash}
	if r.verified && r.position.Seq < durable.Seq {
		r.entries = s.queue.appendEntriesAfter(r.entries[:0], r.position.Seq, maxEventsPerRead)
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

// openRecords opens the segment in which the next step is, or the place itself.
func (r *EventReader) openFirstSegment() error {
	r.snapshot = r.log.spool.snapshot()
	r.segment = r.snapshot.countSegmentsUpTo(r.position.Seq+1) - 2
	return r.openNextSegment()
}

func (r *EventReader) openNextSegment() error {
	r.closeFile()
	if r.segment++; r.segment < 0 || r.segment >= len(r.snapshot.segments) {
		return errGap // there is none with the next entry
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

// readFromFiles reads on in the files, up to what was there when they were opened.
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

// toGapError makes an error one that is errGap.
func toGapError(err error) error {
	if errors.Is(err, errGap) {
		return err
	}
	return fmt.Errorf("%w: %w", errGap, err)
}

// readLine takes a line: the header of a segment, what was read before, the next step,
// or what was never acknowledged.
func (r *EventReader) readLine(ctx context.Context, dst []EntryEvent, line []byte) ([]EntryEvent, error) {
	if r.first {
		r.first = false
		if h, prev, ok := parseSegmentHeader(line); ok {
			return dst, r.checkLink(ChainPosition{h.First - 1, prev})
		}
	}
	seq := parseLineSeq(line)
	if seq == 0 || seq < r.position.Seq {
		return dst, nil // most of a segment, perhaps
	}
	hash, data, ok := splitSpoolLine(line)
	switch {
	case !ok, seq >= r.snapshot.firstOfNextSegment(r.snapshot.segments[r.segment].first), seq > r.snapshot.end.Seq:
		return dst, nil
	case seq <= r.position.Seq || !r.verified:
		return dst, r.checkLink(ChainPosition{seq, hash})
	case seq != r.position.Seq+1:
		return dst, errGap
	}
	e, err := decodeSpoolEntry(hash, data, false)
	if err != nil {
		return dst, toGapError(err)
	}
	r.position = ChainPosition{seq, hash}
	return append(dst, EntryEvent{r.position, e.Kind, e.ID, r.recordFacts(ctx, &e)}), nil
}

// checkLink looks at a link up to the place that the reader is at: that must be one.
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

// parseLineSeq reads the number of an entry from where appendPayloadPrefix writes it; 0 when
// there is none.
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

// recordFacts are those of the record. An end in the files comes without most of them:
// they are those of the beginning, which is in the store if it was not read here.
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
		facts = RecordFacts{Type: ToolCall} // what is known when its beginning is lost
		if record, err := r.log.Get(ctx, e.ID); err == nil {
			facts = NewRecordFacts(&record)
		}
	}
	return facts.WithOutcome(&e.Facts)
}
