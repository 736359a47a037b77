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

// Place is a place in the chain: the number of an entry, and its hash. The zero
// value is the beginning, before the first entry.
type Place struct {
	Seq  int64
	Hash Hash
}

// placeHash is how much of the hash tells an entry from that of another chain which
// has the same number.
const placeHash = 8

func (p Place) is(other Place) bool {
	return p.Seq == other.Seq && [placeHash]byte(p.Hash[:]) == [placeHash]byte(other.Hash[:])
}

// Append appends the place as a text, such as 17-0f3a9c5d2b714e68, to dst.
func (p Place) Append(dst []byte) []byte {
	dst = strconv.AppendInt(dst, p.Seq, 10)
	return hex.AppendEncode(append(dst, '-'), p.Hash[:placeHash])
}

// ParsePlace reads what Append wrote: as much of the place as it takes to find it.
func ParsePlace(text string) (p Place, ok bool) {
	number, hash, _ := strings.Cut(text, "-")
	seq, err := strconv.ParseInt(number, 10, 64)
	if err != nil || seq < 0 || len(hash) != 2*placeHash {
		return p, false
	}
	p.Seq = seq
	_, err = hex.Decode(p.Hash[:], []byte(hash))
	return p, err == nil
}

// Step is an entry of the chain for those who follow the log: what happened,
// without arguments and responses.
type Step struct {
	Place
	Kind  Kind
	ID    string // of the record
	Facts Facts  // of the record as it is by then; empty for a KindRepeat
}

// errGap is a place whose next entry cannot be had: it is too old, or of another
// chain, or what follows is damaged.
var errGap = errors.New("the log does not have what follows")

// stepsMax is how many steps are read at a time.
const stepsMax = 128

// Place returns the place of the last entry that is durable.
func (l *Log) Place() Place {
	l.spool.mu.Lock()
	defer l.spool.mu.Unlock()
	return Place{l.spool.durable.seq, l.spool.durable.hash}
}

// Follow makes a Reader of what is appended from now on, for which the spool keeps
// in memory what it has not read yet, as far as there is room. The channel has a
// value when entries were appended after the last one was taken. There is one at a
// time, until it is closed; who appends never waits for it.
func (l *Log) Follow() (r *Reader, appended <-chan struct{}) {
	told := newSignal()
	r = l.ReadFrom(l.spool.followBy(told))
	r.follows, r.known = true, true
	return r, told
}

// followBy has a signal raised at each write; nil is nobody's. It returns the end.
func (s *spool) followBy(told signal) Place {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.follower, s.followed = told, s.durable.seq
	return Place{s.durable.seq, s.durable.hash}
}

// Reader reads the chain from a place on, entry by entry: from memory what is
// still there, else from the files. It is not safe for concurrent use.
type Reader struct {
	log     *Log
	at      Place
	known   bool             // at is a link of the chain
	follows bool             // see Follow
	entries []Entry          // room
	begun   map[string]Facts // records that began in the files, and have not ended there

	until   mark // of the files, while it reads from them
	segment int  // of until that is read
	file    *os.File
	lines   *bufio.Scanner
	first   bool // the next line is the first of the segment
}

// ReadFrom makes a Reader of what follows a place. It is to be closed.
func (l *Log) ReadFrom(p Place) *Reader {
	return &Reader{log: l, at: p, begun: map[string]Facts{}}
}

// At returns the place of the last step that was read.
func (r *Reader) At() Place { return r.at }

// Close ends the reading.
func (r *Reader) Close() {
	if r.follows {
		r.log.spool.followBy(nil)
	}
	r.closeFile()
}

func (r *Reader) closeFile() {
	if r.file != nil {
		_ = r.file.Close() // it was only read
		r.file = nil
	}
}

// Next appends the steps that follow to dst, some of them at a time, and moves on
// to the last. None is the end, until more is appended. After an error, which is
// errGap, it reads nothing any more.
func (r *Reader) Next(ctx context.Context, dst []Step) ([]Step, error) {
	if r.file == nil {
		steps, done, err := r.fromMemory(dst)
		if done || err != nil {
			return steps, err
		}
		if err := r.open(); err != nil {
			return dst, err
		}
	}
	return r.fromFiles(ctx, dst)
}

// fromMemory reads what the spool has in memory. It is not done when that does
// not have the next step, or it is not known whether that is the next.
func (r *Reader) fromMemory(dst []Step) (steps []Step, done bool, err error) {
	s := r.log.spool
	s.mu.Lock()
	durable := Place{s.durable.seq, s.durable.hash}
	if r.known && r.at.Seq < durable.Seq {
		r.entries = s.queue.after(r.entries[:0], r.at.Seq, stepsMax)
	}
	if n := len(r.entries); r.follows && n > 0 {
		s.followed = r.entries[n-1].Seq
	}
	s.mu.Unlock()
	entries := r.entries
	defer clear(entries)
	r.entries = entries[:0]
	switch {
	case r.at.is(durable):
		r.at, r.known = durable, true
		return dst, true, nil
	case r.at.Seq >= durable.Seq:
		return dst, true, errGap
	case len(entries) == 0 || entries[0].Seq != r.at.Seq+1:
		return dst, false, nil
	}
	for i := range entries {
		e := &entries[i]
		dst = append(dst, Step{Place{e.Seq, e.Hash}, e.Kind, e.ID, e.Facts})
		r.at = Place{e.Seq, e.Hash}
	}
	clear(r.begun)
	return dst, true, nil
}

// open opens the segment in which the next step is, or the place itself.
func (r *Reader) open() error {
	r.until = r.log.spool.mark()
	r.segment = r.until.upTo(r.at.Seq+1) - 2
	return r.nextSegment()
}

func (r *Reader) nextSegment() error {
	r.closeFile()
	if r.segment++; r.segment < 0 || r.segment >= len(r.until.segments) {
		return errGap // there is none with the next entry
	}
	seg := r.until.segments[r.segment]
	f, err := os.Open(seg.path)
	if err != nil {
		return fmt.Errorf("%w: %w", errGap, err)
	}
	r.file, r.first = f, true
	r.lines = bufio.NewScanner(io.LimitReader(f, seg.size))
	r.lines.Buffer(make([]byte, 64<<10), 64<<20)
	return nil
}

// fromFiles reads on in the files, up to what was there when they were opened.
func (r *Reader) fromFiles(ctx context.Context, dst []Step) ([]Step, error) {
	for n := len(dst); len(dst)-n < stepsMax && r.file != nil; {
		var err error
		if !r.lines.Scan() {
			if err = r.lines.Err(); err == nil {
				err = r.nextSegment()
			}
		} else if dst, err = r.line(ctx, dst, r.lines.Bytes()); err == nil && r.known && r.at.Seq >= r.until.end.Seq {
			r.closeFile()
		}
		if err != nil {
			r.closeFile()
			return dst, gap(err)
		}
	}
	return dst, nil
}

// gap makes an error one that is errGap.
func gap(err error) error {
	if errors.Is(err, errGap) {
		return err
	}
	return fmt.Errorf("%w: %w", errGap, err)
}

// line takes a line: the header of a segment, what was read before, the next step,
// or what was never acknowledged.
func (r *Reader) line(ctx context.Context, dst []Step, line []byte) ([]Step, error) {
	if r.first {
		r.first = false
		if h, prev, ok := parseHeader(line); ok {
			return dst, r.pass(Place{h.First - 1, prev})
		}
	}
	seq := seqOf(line)
	if seq == 0 || seq < r.at.Seq {
		return dst, nil // most of a segment, perhaps
	}
	hash, data, ok := splitLine(line)
	switch {
	case !ok, seq >= r.until.after(r.until.segments[r.segment].first), seq > r.until.end.Seq:
		return dst, nil
	case seq <= r.at.Seq || !r.known:
		return dst, r.pass(Place{seq, hash})
	case seq != r.at.Seq+1:
		return dst, errGap
	}
	e, err := decodeEntry(hash, data, false)
	if err != nil {
		return dst, gap(err)
	}
	r.at = Place{seq, hash}
	return append(dst, Step{r.at, e.Kind, e.ID, r.facts(ctx, &e)}), nil
}

// pass looks at a link up to the place that the reader is at: that must be one.
func (r *Reader) pass(p Place) error {
	switch {
	case p.Seq < r.at.Seq:
		return nil
	case !p.is(r.at):
		return errGap
	}
	r.at, r.known = p, true
	return nil
}

// seqOf reads the number of an entry from where appendPrefix writes it; 0 when
// there is none.
func seqOf(line []byte) (seq int64) {
	const before = hexLen + len(` {"id":"`) + ulidLen + len(`","seq":`)
	for _, c := range line[min(before, len(line)):] {
		if c < '0' || c > '9' {
			break
		}
		seq = 10*seq + int64(c-'0')
	}
	return seq
}

// facts are those of the record. An end in the files comes without most of them:
// they are those of the beginning, which is in the store if it was not read here.
func (r *Reader) facts(ctx context.Context, e *Entry) Facts {
	switch e.Kind {
	case KindBegin:
		if len(r.begun) < 4*stepsMax {
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
		facts = Facts{Type: ToolCall} // what is known when its beginning is lost
		if record, err := r.log.Get(ctx, e.ID); err == nil {
			facts = FactsOf(&record)
		}
	}
	return facts.EndedBy(&e.Facts)
}
