package activity

import (
	"errors"
	"os"

	"mcpproxy/internal/ondisk"
)

// write writes what waits. It is called with mu, and unlocks it meanwhile.
func (s *spool) write() {
	s.writing = true
	w := writing{waiting: s.queue.unwritten(), size: s.pending, from: s.durable, target: s.head, at: s.ids.ms, good: s.good.seq}
	safe := min(s.good.seq, s.projected)
	s.mu.Unlock()
	err := s.writeOut(&w)
	s.recent.safe(safe)
	s.mu.Lock()
	s.writing = false
	s.fresh = s.fresh || w.broken
	if err != nil {
		s.fail(err)
	} else {
		s.succeed(&w)
	}
	s.wrote.Broadcast()
}

// writing is one write: the entries after from up to target.
type writing struct {
	waiting      []blockRange
	size         int64 // of these
	from, target link
	at           int64
	good         int64 // the last entry that is known to be on the disk
	synced       bool  // all of it is there now
	broken       bool  // nothing more may be written to the file
}

func (s *spool) succeed(w *writing) {
	if s.failure != nil {
		s.logger.Info("the activity log can be written again")
		s.failure = nil
	}
	behind := s.durable.seq - s.projected
	for _, r := range w.waiting {
		r.block.settle(r, s.last)
	}
	s.pending -= w.size
	s.durable = w.target
	if w.synced {
		s.good = w.target
	}
	if behind == 0 || behind < MaxBatch && s.durable.seq-s.projected >= MaxBatch {
		s.kick.raise()
	}
	if s.follower != nil {
		s.follower.raise()
	}
}

// fail takes back everything that is not durable.
func (s *spool) fail(err error) {
	s.failed(err)
	s.run.durable, s.run.err = s.durable.seq, err
	s.run = &run{}
	s.head = s.durable
	s.pending, s.reserved = 0, 0
	s.queue.takeBack()
}

// failed notes that nothing can be written, and has somebody look why.
func (s *spool) failed(err error) {
	if s.failure == nil {
		s.logger.Error("the activity log cannot be written", "error", err)
	}
	s.failure = err
	s.ill.raise()
}

// writeOut writes to the last segment, of which it is the only user meanwhile,
// and then to the second copy. On failure the segment is as before, or is left
// for a new one.
func (s *spool) writeOut(w *writing) error {
	n := int(w.size)
	copied := s.recent.ready(n, w.good)
	if !copied && w.good < w.from.seq {
		// What the copy has is not known to be on the disk: it comes first.
		if _, err := s.syncAll(); err != nil {
			w.broken = true
			return err
		}
		copied = s.recent.ready(n, w.from.seq)
	}
	if s.recent.off == 0 {
		s.ill.raise() // the other half has to be on the disk when this one is full
	}
	var err error
	for _, r := range w.waiting {
		if _, err = s.file.Write(r.data); err != nil {
			break
		}
	}
	if err == nil && (s.power || !copied) {
		if err = s.file.Sync(); err != nil && !s.power { // then what came before may be lost, too
			s.fallIll(err)
		} else if !s.power {
			_, err = s.syncAll() // with the segments before
		}
		w.broken = err != nil // what the kernel still holds of this file is unknown
		w.synced = err == nil
	}
	if err != nil {
		if cutErr := s.file.Truncate(s.last.size); cutErr != nil {
			w.broken = true
		}
		return err
	}
	if !copied {
		s.recent.skip(w.target.seq)
	} else if err := s.recent.put(s.chain, w.from, w.target, w.at, w.waiting); err != nil {
		s.logger.Warn("the newest entries are kept in one place only", "error", err)
	}
	return nil
}

// prepare makes room for size more bytes, in a new segment when the last one is
// full. It reports whether it did; else others were writing and it has to be
// looked at again. It is called with mu, and unlocks it meanwhile.
func (s *spool) prepare(size int64, full bool) (done bool, err error) {
	switch {
	case s.writing:
		s.wrote.Wait()
		return false, nil
	case s.pending > 0:
		s.write()
		return false, nil
	}
	s.writing = true
	from, at := s.durable, s.ids.ms
	s.mu.Unlock()
	next, err := s.extend(size, full, from, at)
	s.mu.Lock()
	s.writing = false
	s.wrote.Broadcast()
	if err != nil {
		s.failed(err)
		return true, err
	}
	s.goOnIn(next)
	return true, nil
}

// goOnIn makes a place the one that is written to.
func (s *spool) goOnIn(p place) {
	if s.file != nil && s.file != p.file {
		s.retired = append(s.retired, s.file)
	}
	s.file, s.reserved, s.fresh = p.file, p.reserved, false
	if s.last != p.segment {
		s.last = p.segment
		s.segments = append(s.segments, p.segment)
	}
}

// extend makes room in the last segment, or in a new one.
func (s *spool) extend(size int64, full bool, from link, at int64) (place, error) {
	if full || s.last == nil || s.fresh {
		return s.beginSegment(from, at, size)
	}
	p := place{file: s.file, segment: s.last}
	var err error
	if p.file == nil {
		if p.file, err = s.open(s.last.path); err != nil {
			return p, err
		}
	}
	p.reserved, err = p.file.Reserve(s.last.size + size)
	if err != nil && s.file == nil {
		err = errors.Join(err, p.file.Close())
	}
	return p, err
}

func (s *spool) beginSegment(from link, at, room int64) (place, error) {
	path := segmentPath(s.dir, from.seq+1)
	if s.last != nil && s.last.path == path {
		// It holds no entry, but something torn that could not be cut off.
		if err := os.Rename(path, tornPath(path, s.now())); err != nil {
			return place{}, err
		}
		s.forgetLast()
	}
	p, err := s.newSegment(path, s.chain, from, at, nil, room)
	if err == nil && s.power {
		err = errors.Join(p.file.Sync(), ondisk.SyncDir(s.dir))
	}
	if err != nil && p.file != nil {
		err = errors.Join(err, p.file.Close(), os.Remove(path))
	}
	return p, err
}

// forgetLast takes the last segment off the list.
func (s *spool) forgetLast() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.segments = s.segments[:len(s.segments)-1]
	if s.file != nil {
		s.retired = append(s.retired, s.file)
	}
	s.last, s.file = nil, nil
}

// fallIll refuses what would begin.
func (s *spool) fallIll(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	if s.sick == nil || s.sick.Error() != err.Error() {
		s.logger.Error("the activity log cannot be kept; calls are refused", "error", err)
	}
	s.sick = err
}

// syncAll brings what was appended to the disk, and returns the last entry of
// that. When it fails, the spool is ill: the kernel tells a file once what it
// has lost of it, and the next time finds nothing wrong.
func (s *spool) syncAll() (target link, err error) {
	s.syncing.Lock()
	defer s.syncing.Unlock()
	s.mu.Lock()
	target, file, retired := s.durable, s.file, s.retired
	s.retired = nil
	known := s.good == target
	s.mu.Unlock()
	for _, f := range retired {
		err = errors.Join(err, f.Sync())
		if err := f.Close(); err != nil {
			s.logger.Warn("a segment of the activity log did not close", "error", err)
		}
	}
	if file != nil && !known {
		err = errors.Join(err, file.Sync())
	}
	if err != nil {
		s.fallIll(err)
	}
	return target, err
}
