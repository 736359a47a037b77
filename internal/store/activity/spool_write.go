package activity

import (
	"errors"
	"os"

	"mcpproxy/internal/ondisk"
)

// writePending writes all waiting entries. The caller must hold mu. writePending unlocks mu during the write.
func (s *spool) writePending() {
	s.writing = true
	w := spoolWrite{waiting: s.queue.unwrittenRanges(), size: s.pendingBytes, from: s.durable, target: s.lastEncoded, at: s.ids.ms, syncedSeq: s.synced.seq}
	safe := min(s.synced.seq, s.projected)
	s.mu.Unlock()
	err := s.writeToFiles(&w)
	s.recent.markSafe(safe)
	s.mu.Lock()
	s.writing = false
	s.needsNewSegment = s.needsNewSegment || w.fileUnusable
	if err != nil {
		s.failWrite(err)
	} else {
		s.finishWrite(&w)
	}
	s.writeDone.Broadcast()
}

// spoolWrite is one write of the entries after from, up to target.
type spoolWrite struct {
	waiting      []blockRange
	size         int64 // total size of the waiting bytes
	from, target chainLink
	at           int64
	syncedSeq    int64 // the last entry that was known to be on the disk before this write
	synced       bool  // whether this write was synced too
	fileUnusable bool  // whether nothing more may be written to the file
}

// finishWrite records that a write succeeded, and wakes the projector and the follower.
func (s *spool) finishWrite(w *spoolWrite) {
	if s.writeError != nil {
		s.logger.Info("the activity log can be written again")
		s.writeError = nil
	}
	behind := s.durable.seq - s.projected
	for _, r := range w.waiting {
		r.block.markWritten(r, s.lastSegment)
	}
	s.pendingBytes -= w.size
	s.durable = w.target
	if w.synced {
		s.synced = w.target
	}
	if behind == 0 || behind < MaxBatch && s.durable.seq-s.projected >= MaxBatch {
		s.projectorWake.wake()
	}
	if s.followerWake != nil {
		s.followerWake.wake()
	}
}

// failWrite discards all entries that are not durable.
func (s *spool) failWrite(err error) {
	s.markWriteFailed(err)
	s.run.durable, s.run.err = s.durable.seq, err
	s.run = &writeRun{}
	s.lastEncoded = s.durable
	s.pendingBytes, s.reservedUpTo = 0, 0
	s.queue.discardUnwritten()
}

// markWriteFailed records that writing failed, and wakes the watcher.
func (s *spool) markWriteFailed(err error) {
	if s.writeError == nil {
		s.logger.Error("the activity log cannot be written", "error", err)
	}
	s.writeError = err
	s.checkWake.wake()
}

// writeToFiles writes to the last segment and then to the second copy. No other goroutine uses the segment in the
// meantime. If writing fails, the segment is restored or replaced by a new one.
func (s *spool) writeToFiles(w *spoolWrite) error {
	n := int(w.size)
	copied := s.recent.makeRoom(n, w.syncedSeq)
	if !copied && w.syncedSeq < w.from.seq {
		// The oldest entries in the copy are not known to be on the disk, so sync them before they are overwritten.
		if _, err := s.syncFiles(); err != nil {
			w.fileUnusable = true
			return err
		}
		copied = s.recent.makeRoom(n, w.from.seq)
	}
	if s.recent.off == 0 {
		s.checkWake.wake() // a check syncs the entries in the other half before this half is full
	}
	var err error
	for _, r := range w.waiting {
		if _, err = s.file.Write(r.data); err != nil {
			break
		}
	}
	if err == nil && (s.syncEachWrite || !copied) {
		if err = s.file.Sync(); err != nil && !s.syncEachWrite { // earlier entries may also be lost
			s.blockNewRecords(err)
		} else if !s.syncEachWrite {
			_, err = s.syncFiles() // also syncs the segments before
		}
		w.fileUnusable = err != nil // the kernel may have lost data of this file
		w.synced = err == nil
	}
	if err != nil {
		if cutErr := s.file.Truncate(s.lastSegment.size); cutErr != nil {
			w.fileUnusable = true
		}
		return err
	}
	if !copied {
		s.recent.skipEntriesUpTo(w.target.seq)
	} else if err := s.recent.appendRanges(s.chain, w.from, w.target, w.at, w.waiting); err != nil {
		s.logger.Warn("the newest entries are stored in one location only", "error", err)
	}
	return nil
}

// prepareRoom reserves room for size more bytes, in a new segment if full is true. done is false if another goroutine
// was writing. In that case, the caller must check again whether it needs room. The caller must hold mu. prepareRoom
// unlocks it in the meantime.
func (s *spool) prepareRoom(size int64, full bool) (done bool, err error) {
	switch {
	case s.writing:
		s.writeDone.Wait()
		return false, nil
	case s.pendingBytes > 0:
		s.writePending()
		return false, nil
	}
	s.writing = true
	from, at := s.durable, s.ids.ms
	s.mu.Unlock()
	next, err := s.reserveRoom(size, full, from, at)
	s.mu.Lock()
	s.writing = false
	s.writeDone.Broadcast()
	if err != nil {
		s.markWriteFailed(err)
		return true, err
	}
	s.switchWriteTarget(next)
	return true, nil
}

// switchWriteTarget makes the spool continue writing to p.
func (s *spool) switchWriteTarget(p writeTarget) {
	if s.file != nil && s.file != p.file {
		s.fullSegments = append(s.fullSegments, s.file)
	}
	s.file, s.reservedUpTo, s.needsNewSegment = p.file, p.reserved, false
	if s.lastSegment != p.segment {
		s.lastSegment = p.segment
		s.segments = append(s.segments, p.segment)
	}
}

// reserveRoom reserves room in the last segment or in a new one.
func (s *spool) reserveRoom(size int64, full bool, from chainLink, at int64) (writeTarget, error) {
	if full || s.lastSegment == nil || s.needsNewSegment {
		return s.startSegment(from, at, size)
	}
	p := writeTarget{file: s.file, segment: s.lastSegment}
	var err error
	if p.file == nil {
		if p.file, err = s.openFile(s.lastSegment.path); err != nil {
			return p, err
		}
	}
	p.reserved, err = p.file.Reserve(s.lastSegment.size + size)
	if err != nil && s.file == nil {
		err = errors.Join(err, p.file.Close())
	}
	return p, err
}

// startSegment creates a segment that continues the chain after the entry from, and reserves room in it.
func (s *spool) startSegment(from chainLink, at, room int64) (writeTarget, error) {
	path := segmentPath(s.dir, from.seq+1)
	if s.lastSegment != nil && s.lastSegment.path == path {
		// The file contains no entry, only a torn end that could not be cut off.
		if err := os.Rename(path, tornFilePath(path, s.now())); err != nil {
			return writeTarget{}, err
		}
		s.detachLastSegment()
	}
	p, err := s.createSegment(path, s.chain, from, at, nil, room)
	if err == nil && s.syncEachWrite {
		err = errors.Join(p.file.Sync(), ondisk.SyncDir(s.dir))
	}
	if err != nil && p.file != nil {
		err = errors.Join(err, p.file.Close(), os.Remove(path))
	}
	return p, err
}

// detachLastSegment removes the last segment from the list.
func (s *spool) detachLastSegment() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.segments = s.segments[:len(s.segments)-1]
	if s.file != nil {
		s.fullSegments = append(s.fullSegments, s.file)
	}
	s.lastSegment, s.file = nil, nil
}

// blockNewRecords makes the spool refuse new records because of err.
func (s *spool) blockNewRecords(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	if s.blockedBy == nil || s.blockedBy.Error() != err.Error() {
		s.logger.Error("the activity log cannot be written; calls are rejected", "error", err)
	}
	s.blockedBy = err
}

// syncFiles syncs everything that was appended, and returns the last entry of it. If a sync fails, syncFiles blocks new
// records, because the kernel reports lost data of a file only once and a second sync would succeed.
func (s *spool) syncFiles() (target chainLink, err error) {
	s.syncing.Lock()
	defer s.syncing.Unlock()
	s.mu.Lock()
	target, file, retired := s.durable, s.file, s.fullSegments
	s.fullSegments = nil
	known := s.synced == target
	s.mu.Unlock()
	for _, f := range retired {
		err = errors.Join(err, f.Sync())
		if err := f.Close(); err != nil {
			s.logger.Warn("a segment file of the activity log could not be closed", "error", err)
		}
	}
	if file != nil && !known {
		err = errors.Join(err, file.Sync())
	}
	if err != nil {
		s.blockNewRecords(err)
	}
	return target, err
}
