package activity

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
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
	dir        string
	power      bool // fsync every write
	maxBytes   int64
	maxSegment int64
	now        func() time.Time
	open       func(path string) (spoolFile, error)
	logger     *slog.Logger
	kick       chan struct{} // there is something for the projector
	lock       *os.File

	mu        sync.Mutex // guards what follows
	wrote     sync.Cond  // a write has ended
	writing   bool       // somebody writes, without mu
	closed    bool
	ids       ulidSource
	chain     string
	head      link  // the last entry that was encoded
	durable   link  // the last entry that was written
	projected int64 // the last entry that the store has
	run       *run
	failure   error // of the last write; nil when it went well
	queue     queue
	busy      time.Time  // when the last entry came
	segments  []*segment // oldest first

	// Only who writes (see writing) touches these; last is also in segments, and
	// its size changes with mu held.
	last  *segment
	file  spoolFile // of last; nil until something is written
	fresh bool      // the next write begins a new segment
}

// link is a place in the chain.
type link struct {
	seq  int64
	hash Hash
}

// run is a stretch of writes that went well. A failed write ends it: every entry
// of it that is not durable fails, since its hash builds on a lost one.
type run struct {
	durable int64
	err     error
}

// spoolFile is what the spool needs of a file.
type spoolFile interface {
	Write(p []byte) (int, error)
	Truncate(size int64) error
	Sync() error
	Close() error
}

func openFile(path string) (spoolFile, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
}

// draft is an entry before it has its place in the chain.
type draft struct {
	kind  Kind
	id    string // KindEnd only
	of    int64  // KindEnd only
	body  []byte // the payload without its prefix
	facts Facts
}

// stamp is the place that an entry got.
type stamp struct {
	seq  int64
	id   string
	time time.Time
}

var errClosed = errors.New("the activity log is closed")

// openSpool opens the spool in dir and finds the end of its chain. A torn end is
// put aside. It returns what has to be told about that.
func (s *spool) openSpool() (notes []string, err error) {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, err
	}
	s.lock, err = lockFile(filepath.Join(s.dir, "lock"))
	if err != nil {
		return nil, fmt.Errorf("another process writes to %s: %w", s.dir, err)
	}
	s.wrote.L = &s.mu
	s.run = &run{}
	if s.segments, err = listSegments(s.dir); err != nil {
		return nil, err
	}
	for len(s.segments) > 0 {
		t, note, err := s.recover(s.segments[len(s.segments)-1])
		if note != "" {
			notes = append(notes, note)
		}
		if err != nil {
			return notes, err
		}
		if t != nil {
			s.last = s.segments[len(s.segments)-1]
			s.continueFrom(*t)
			return notes, nil
		}
		s.segments = s.segments[:len(s.segments)-1]
	}
	s.continueFrom(tail{})
	s.chain, err = newChain()
	return notes, err
}

func newChain() (string, error) {
	var b [8]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", err
	}
	return hex.EncodeToString(b[:]), nil
}

func (s *spool) continueFrom(t tail) {
	s.chain = t.chain
	s.head = link{t.seq, t.hash}
	s.durable = s.head
	s.ids = after(max(t.at, s.now().UnixMilli()))
}

// recover finds the end of the chain in the last segment. A segment without one
// good line is put aside as a whole (nil tail).
func (s *spool) recover(last *segment) (*tail, string, error) {
	f, err := os.Open(last.path)
	if err != nil {
		return nil, "", err
	}
	defer f.Close()
	t, ok, err := findTail(f, last.size)
	if err != nil {
		return nil, "", err
	}
	if !ok {
		aside := fmt.Sprintf("%s.torn-%d", last.path, s.now().UnixMilli())
		note := fmt.Sprintf("A segment of the spool without a readable entry was put aside as %s.", filepath.Base(aside))
		return nil, note, os.Rename(last.path, aside)
	}
	if t.chain == "" { // its header is unreadable: go on under a new name
		if t.chain, err = newChain(); err != nil {
			return nil, "", err
		}
		s.fresh = true
	}
	note := ""
	if t.size < last.size {
		note = s.cutTorn(last, t)
	} else if os.Truncate(last.path, t.size) != nil { // what was reserved
		s.fresh = true
	}
	last.size = t.size
	return &t, note, nil
}

// cutTorn takes the torn end off. When the disk is too full to keep it aside it
// stays where it is, and the spool goes on in a new segment.
func (s *spool) cutTorn(last *segment, t tail) string {
	aside, err := setAside(last.path, t.size, last.size, s.now())
	if err != nil {
		s.fresh = true
		return fmt.Sprintf("The spool ends in %d bytes that are no entry; it goes on in a new segment.", last.size-t.size)
	}
	return fmt.Sprintf("The spool ended in %d bytes that are no entry; they were put aside as %s.",
		last.size-t.size, filepath.Base(aside))
}

// append gives the entry its place in the chain and returns when it is written.
func (s *spool) append(d *draft) (stamp, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return stamp{}, errClosed
	}
	if d.kind != KindEnd && s.bytes() >= s.maxBytes {
		return stamp{}, fmt.Errorf("the spool holds its limit of %d bytes that are not in the database yet", s.maxBytes)
	}
	st := s.encode(d)
	r := s.run
	for s.durable.seq < st.seq && r.err == nil {
		if s.writing {
			s.wrote.Wait()
		} else {
			s.write()
		}
	}
	if r.err != nil && st.seq > r.durable {
		return stamp{}, r.err
	}
	return st, nil
}

// encode writes the entry to memory, behind the others that wait.
func (s *spool) encode(d *draft) stamp {
	st := stamp{seq: s.head.seq + 1, id: d.id, time: s.now().UTC().Truncate(time.Microsecond)}
	s.busy = st.time
	if d.kind != KindEnd {
		st.id = s.ids.next(st.time)
		d.facts.Time = st.time.UnixMicro()
	}
	b := s.queue.room(lineExtra + prefixMax + len(d.body))
	start := len(b.data)
	line := b.data[start : start+hexLen+1]
	line[hexLen] = ' '
	line = appendPrefix(line, d.kind, st.id, st.seq, st.time, max(s.ids.ms, st.time.UnixMilli()))
	line = append(line, d.body...)
	s.head = link{st.seq, seal(line, s.head.hash)}
	b.data = append(b.data[:start+len(line)], '\n')
	b.entries = append(b.entries, Entry{
		Seq: st.seq, Kind: d.kind, ID: st.id, Of: d.of, Hash: s.head.hash,
		Payload: line[hexLen+1 : len(line) : len(line)], Facts: d.facts,
	})
	return st
}

// write writes what waits. It is called with mu, and gives it up meanwhile.
func (s *spool) write() {
	s.writing = true
	target, from, at := s.head, s.durable, s.ids.ms
	waiting := s.queue.unwritten()
	s.mu.Unlock()
	err := s.writeOut(waiting, from, at)
	s.mu.Lock()
	s.writing = false
	if err != nil {
		s.fail(err)
	} else {
		s.succeed(waiting, target)
	}
	s.wrote.Broadcast()
}

func (s *spool) succeed(waiting []blockRange, target link) {
	if s.failure != nil {
		s.logger.Info("the activity log can be written again")
		s.failure = nil
	}
	behind := s.durable.seq - s.projected
	for _, r := range waiting {
		r.block.settle(r, s.last)
	}
	s.durable = target
	if behind == 0 || behind < batchEntries && s.durable.seq-s.projected >= batchEntries {
		s.wake()
	}
}

// wake tells the projector that there is something to do.
func (s *spool) wake() {
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// fail takes back everything that is not durable.
func (s *spool) fail(err error) {
	if s.failure == nil {
		s.logger.Error("the activity log cannot be written", "error", err)
	}
	s.failure = err
	s.run.durable, s.run.err = s.durable.seq, err
	s.run = &run{}
	s.head = s.durable
	s.queue.takeBack()
}

// writeOut writes the ranges to the last segment, of which it is the only user
// meanwhile. On failure the segment is as before, or is left for a new one.
func (s *spool) writeOut(waiting []blockRange, from link, at int64) error {
	if err := s.ensureFile(from, at); err != nil {
		return err
	}
	var err error
	for _, r := range waiting {
		if _, err = s.file.Write(r.data); err != nil {
			break
		}
	}
	if err == nil && s.power {
		if err = s.file.Sync(); err != nil {
			s.fresh = true // what the kernel still holds of this file is unknown
		}
	}
	if err == nil {
		return nil
	}
	if cutErr := s.file.Truncate(s.last.size); cutErr != nil {
		s.fresh = true
	}
	return err
}

// ensureFile opens the file to write to, and begins a new segment when it is
// time to.
func (s *spool) ensureFile(from link, at int64) error {
	if s.last == nil || s.fresh || s.last.size >= s.maxSegment {
		return s.beginSegment(from, at)
	}
	if s.file != nil {
		return nil
	}
	f, err := s.open(s.last.path)
	if err == nil {
		s.file = f
	}
	return err
}

func (s *spool) beginSegment(from link, at int64) error {
	path := segmentPath(s.dir, from.seq+1)
	if s.last != nil && s.last.path == path {
		// It holds no entry, but something torn that could not be cut off.
		if err := os.Rename(path, fmt.Sprintf("%s.torn-%d", path, s.now().UnixMilli())); err != nil {
			return err
		}
		s.forgetLast()
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil { // somebody may have cleared up
		return err
	}
	f, err := s.open(path)
	if err != nil {
		return err
	}
	line := appendHeader(nil, from.hash, header{Chain: s.chain, First: from.seq + 1, At: at})
	_, err = f.Write(line)
	if err == nil && s.power {
		err = errors.Join(f.Sync(), syncDir(s.dir))
	}
	if err != nil {
		return errors.Join(err, f.Close(), os.Remove(path))
	}
	if s.file != nil {
		if err := s.file.Close(); err != nil {
			s.logger.Warn("a segment of the activity log did not close", "error", err)
		}
	}
	s.file, s.fresh = f, false
	s.last = &segment{first: from.seq + 1, size: int64(len(line)), path: path}
	s.mu.Lock()
	s.segments = append(s.segments, s.last)
	s.mu.Unlock()
	return nil
}

// forgetLast takes the last segment off the list.
func (s *spool) forgetLast() {
	s.mu.Lock()
	s.segments = s.segments[:len(s.segments)-1]
	s.mu.Unlock()
	s.last = nil
}

// bytes is the size of the spool on disk.
func (s *spool) bytes() int64 {
	var n int64
	for _, seg := range s.segments {
		n += seg.size
	}
	return n
}

// close ends the spool. It waits for a write that is under way.
func (s *spool) close() error {
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
	if s.file != nil {
		err = errors.Join(s.file.Sync(), s.file.Close())
	}
	return errors.Join(err, s.lock.Close())
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

// idle says whether nothing was appended for d.
func (s *spool) idle(d time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now().Sub(s.busy) >= d
}

// take appends entries after seq from memory to dst, a batch at most. They stay
// valid until they are released. ok is false when memory does not have the next.
func (s *spool) take(dst []Entry, seq int64) (entries []Entry, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.durable.seq == seq {
		return dst, true
	}
	if first, ok := s.queue.oldest(); !ok || first > seq+1 {
		return dst, false
	}
	return s.queue.after(dst, seq, batchEntries), true
}

// release says that the store has the entries up to seq.
func (s *spool) release(seq int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.projected = seq
	s.queue.release(seq)
}

// removable counts the segments that prune would remove.
func (s *spool) removable(seq int64) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	done := 0
	for done+1 < len(s.segments) && s.segments[done+1].first <= seq+1 {
		done++
	}
	return max(0, done-keepSegments)
}

// prune removes segments whose entries the store has for good, but a few.
func (s *spool) prune(ctx context.Context, seq int64, sync func(context.Context) error) error {
	n := s.removable(seq)
	if n == 0 {
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
