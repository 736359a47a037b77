package activity

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"
)

// spool is the append-only file of entries, in segments. An entry is durable
// when append returns. Appends that come while one is being written are written
// together by the next, so that a slow disk makes them larger, not slower.
//
// It also keeps the newest entries in memory, for the projector. When that falls
// behind, memory stays bounded and the files have everything.
type spool struct {
	folder
	power      bool // fsync every write
	maxBytes   int64
	maxSegment int64
	kick       signal // there is something for the projector
	ill        signal // there is something to look at
	lock       *os.File

	recentDir string // where the second copy of the newest entries is; empty: in this process

	mu        sync.Mutex // guards what follows
	wrote     sync.Cond  // a write has ended
	syncing   sync.Mutex // one brings to the disk at a time; taken before mu
	writing   bool       // somebody writes, without mu
	closed    bool
	ids       ulidSource
	chain     string
	head      link  // the last entry that was encoded
	durable   link  // the last entry that was written
	good      link  // the last entry that is known to be on the disk
	projected int64 // the last entry that the store has
	run       *run
	failure   error     // of the last write; nil when it went well
	sick      error     // why nothing may begin; nil when all is well
	storeSick error     // the same, of the store
	goneAt    time.Time // when the spool was last found deleted
	queue     queue
	busy      time.Time   // when the last entry came
	segments  []*segment  // oldest first
	pending   int64       // bytes that are encoded and not written
	reserved  int64       // the last segment has room up to here
	follower  signal      // is told of each write; nil when nobody follows
	followed  int64       // the last entry that it has read
	owed      int         // how many ends are to come, for which there is room
	retired   []spoolFile // of segments that are full: to be synced, and closed

	// Only who writes (see writing) changes these, with mu held. last is also in
	// segments.
	last  *segment
	file  spoolFile // of last; nil until something is written
	fresh bool      // the next write begins a new segment

	// Only who writes uses these.
	recent *recent
	kept   map[string]keptEnd // outcomes that an earlier process could not write
}

// MaxBatch is the largest number of entries that Store.Project is called with.
const MaxBatch = 2048

const keepSegments = 1 // that are projected stay, should the database be lost

// run is a stretch of writes that went well. A failed write ends it: every entry
// of it that is not durable fails, since its hash builds on a lost one.
type run struct {
	durable int64
	err     error
}

// append assigns the entry its place in the chain and returns when it is
// written.
func (s *spool) append(d *draft) (stamp, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.admit(d); err != nil {
		return stamp{}, err
	}
	st, owed := s.encode(d), s.owed
	s.owed = s.owedAfter(d)
	change := s.owed - owed
	r := s.run
	for s.durable.seq < st.seq && r.err == nil {
		if s.writing {
			s.wrote.Wait()
		} else {
			s.write()
		}
	}
	if r.err != nil && st.seq > r.durable {
		s.owed -= change
		return stamp{}, r.err
	}
	return st, nil
}

// admit returns when there is room for the entry, and for the ends that are to
// come.
func (s *spool) admit(d *draft) error {
	owed := s.owedAfter(d)
	for turned := false; ; {
		if err := s.refused(d); err != nil {
			return err
		}
		full := d.kind != KindEnd && !turned && s.last != nil && s.last.size+s.pending >= s.maxSegment
		if !full && s.fits(d, owed) {
			return nil
		}
		done, err := s.prepare(d.size()+int64(owed)*endRoom, full)
		if err != nil && !s.fits(d, owed) {
			return err
		}
		turned = turned || done
		owed = s.owedAfter(d)
	}
}

// refused is why the entry is not taken at this time.
func (s *spool) refused(d *draft) error {
	switch {
	case s.closed:
		return errClosed
	case d.kind == KindEnd: // the call was made
		return nil
	case s.sick != nil:
		return s.sick
	case s.storeSick != nil:
		return s.storeSick
	case s.bytes() >= s.maxBytes:
		return fmt.Errorf("the spool holds its limit of %d bytes that are not in the database yet", s.maxBytes)
	}
	return nil
}

// setStoreSick refuses what would begin while the store's disk fails.
func (s *spool) setStoreSick(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.storeSick = err
}

// owedAfter is how many ends are to come when the entry is written.
func (s *spool) owedAfter(d *draft) int {
	switch {
	case d.kind == KindBegin:
		return s.owed + 1
	case d.owed:
		return s.owed - 1
	}
	return s.owed
}

func (s *spool) fits(d *draft, owed int) bool {
	if s.file == nil || s.fresh {
		return false
	}
	return s.reserved-s.last.size-s.pending >= d.size()+int64(owed)*endRoom
}

// encode writes the entry to memory, behind the others that wait.
func (s *spool) encode(d *draft) stamp {
	st := stamp{seq: s.head.seq + 1, id: d.id, time: s.now().UTC().Truncate(time.Microsecond)}
	s.busy = st.time
	if d.id == "" {
		st.id = s.ids.next(st.time)
		d.facts.Time = st.time.UnixMicro()
	}
	b := s.queue.blockFor(lineExtra + prefixMax + len(d.body.data))
	start := len(b.data)
	line := b.data[start : start+hexLen+1]
	line[hexLen] = ' '
	line = appendPrefix(line, d.kind, st.id, st.seq, st.time, max(s.ids.ms, st.time.UnixMilli()))
	line = append(line, d.body.data[:d.body.chained]...)
	s.head = link{st.seq, seal(line, s.head.hash)}
	line = d.body.finish(line)
	b.data = append(b.data[:start+len(line)], '\n')
	s.pending += int64(len(line)) + 1
	b.entries = append(b.entries, Entry{
		Seq: st.seq, Kind: d.kind, ID: st.id, Of: d.of, Hash: s.head.hash,
		Payload: line[hexLen+1 : len(line) : len(line)], Facts: d.facts, Redacts: d.redacts,
	})
	return st
}

// bytes is the size of the spool on disk.
func (s *spool) bytes() int64 {
	var n int64
	for _, seg := range s.segments {
		n += seg.size
	}
	return n
}

// close ends the spool. It waits for a write that is under way. ended reports whether
// no outcome waits outside of it.
func (s *spool) close(ended bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.writing {
		s.wrote.Wait()
	}
	if s.closed {
		return nil
	}
	s.closed = true
	var err error
	for _, f := range s.files() {
		err = errors.Join(err, f.Sync(), f.Close())
	}
	whole := err == nil && ended && s.sick == nil && s.failure == nil
	return errors.Join(err, s.recent.close(whole), s.lock.Close())
}

// files are those that are open, oldest first.
func (s *spool) files() []spoolFile {
	if s.file == nil {
		return s.retired
	}
	return append(slices.Clip(s.retired), s.file)
}

// end is the number of the last durable entry.
func (s *spool) end() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.durable.seq
}

// behind is how many durable entries are not in the store.
func (s *spool) behind() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.durable.seq - s.projected
}

// idle reports whether nothing was appended for d.
func (s *spool) idle(d time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now().Sub(s.busy) >= d
}

// take puts entries after seq from memory into dst, a batch at most. They stay
// valid until they are released. ok is false when memory does not have the next.
func (s *spool) take(dst []Entry, seq int64) (entries []Entry, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.durable.seq == seq {
		return dst, true
	}
	entries = s.queue.after(dst, seq, MaxBatch)
	return entries, len(entries) > 0 && entries[0].Seq == seq+1
}

// release notes that the store has the entries up to seq.
func (s *spool) release(seq int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.projected = seq
	if s.follower != nil {
		seq = min(seq, s.followed)
	}
	s.queue.release(seq)
}

// prune removes segments whose entries the store has for good, but a few, when
// there are at least so many.
func (s *spool) prune(ctx context.Context, seq int64, least int, sync func(context.Context) error) error {
	s.mu.Lock()
	n := -keepSegments
	for i := 1; i < len(s.segments) && s.segments[i].first <= seq+1; i++ {
		n++
	}
	s.mu.Unlock()
	if n < least {
		return nil
	}
	if err := sync(ctx); err != nil {
		return err
	}
	for range n {
		s.mu.Lock()
		path := s.segments[0].path
		s.segments = s.segments[1:]
		s.mu.Unlock()
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			s.logger.Warn("a segment of the activity log cannot be removed", "error", err)
		}
	}
	return nil
}
