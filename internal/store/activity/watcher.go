package activity

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"mcpproxy/internal/ondisk"
)

const (
	defaultCheckEvery = time.Second
	// stalledAfter is the maximum duration of one check before the disk counts as stalled.
	stalledAfter = 10 * time.Second
)

// watch checks the spool, and repairs it, until ctx ends. It calls afterCheck after each check. It is needed because
// writing through a mapping reports no error when the disk fails, and because a deleted file can still be written to.
func (s *spool) watch(ctx context.Context, every time.Duration, afterCheck func()) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-s.checkWake:
		}
		s.checkAndRepair()
		afterCheck()
	}
}

// checkAndRepair checks that the files of the spool exist and can be written, and that appended entries are on the
// disk. If a check fails, it blocks new records until the spool is repaired.
func (s *spool) checkAndRepair() {
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return
	}
	stalled := time.AfterFunc(stalledAfter, func() {
		s.blockNewRecords(fmt.Errorf("the disk of %s has not responded for %s", s.dir, stalledAfter))
	})
	defer stalled.Stop()
	target, syncErr := s.syncFiles()
	err := s.probeDisk(s.lock)      // after the sync, because a sync may seem to succeed on a failing disk
	gone, lostErr := s.checkFiles() // after the sync, because synced entries count only if their files exist
	if err = errors.Join(err, syncErr, lostErr); err == nil {
		s.markSynced(target)
	}
	if err != nil {
		s.blockNewRecords(err)
	}
	s.mu.Lock()
	ill, failing := s.blockedBy != nil, s.writeError != nil
	s.mu.Unlock()
	switch {
	case ill && (err == nil || gone): // a repair may succeed
		if err = s.repairSpool(gone); err != nil {
			s.blockNewRecords(err)
		}
	case failing && err == nil:
		s.checkIfWritableAgain()
	}
	s.replaceDeletedCopy()
	s.markSafeInCopy()
}

// replaceDeletedCopy creates a new second copy if the file of the old one was deleted. This happens at the end of a
// user's login session, which clears the directory.
func (s *spool) replaceDeletedCopy() {
	if s.recent.file == nil {
		return
	}
	path := s.recent.file.Name()
	if ok, err := ondisk.IsFileStillAtPath(path, s.recent.file.File); ok || err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.writing {
		s.writeDone.Wait()
	}
	if s.closed || s.blockedBy != nil {
		return // the next check tries again
	}
	// Sync the entries that only the old copy has.
	for _, f := range s.listOpenFiles() {
		if err := f.Sync(); err != nil {
			s.blockedBy = err
			return
		}
	}
	s.synced = s.durable
	carry, ok := s.recent.newestLines(min(s.synced.seq, s.projected))
	if err := s.recent.close(false); err != nil {
		s.logger.Debug("the file with the second copy of the newest entries could not be closed", "error", err)
	}
	next, _, _, err := openRecentCopy(path)
	if err != nil {
		s.logger.Warn("the newest entries are stored in one location only", "error", err)
		next = newInProcessCopy()
	}
	s.recent = next
	if ok && len(carry.lines) > 0 && next.makeRoom(len(carry.lines), 0) {
		err := next.appendRanges(s.chain, carry.prev, carry.last, carry.at, []blockRange{{data: carry.lines}})
		if err != nil {
			s.logger.Warn("the newest entries are stored in one location only", "error", err)
		}
	}
}

// checkFiles checks that the files exist and that their names still refer to the open files. gone reports whether a
// file was deleted or replaced.
func (s *spool) checkFiles() (gone bool, err error) {
	m := s.snapshot()
	if ok, err := ondisk.IsFileStillAtPath(s.lockPath(), s.lock.File); err != nil || !ok {
		return err == nil, errors.Join(err, fmt.Errorf("%s was deleted or replaced", s.dir))
	}
	for i, seg := range m.segments {
		info, err := os.Stat(seg.path)
		switch {
		case errors.Is(err, os.ErrNotExist):
			if s.isPruned(seg.first) {
				continue
			}
			return true, fmt.Errorf("%s was deleted", seg.path)
		case err != nil:
			return false, err
		case info.Size() < seg.size:
			return true, fmt.Errorf("%s was cut short", seg.path)
		}
		if last := i == len(m.segments)-1; last && m.file != nil {
			if own, err := m.file.Stat(); err != nil || !os.SameFile(own, info) {
				return err == nil, errors.Join(err, fmt.Errorf("%s was replaced", seg.path))
			}
		}
	}
	return false, nil
}

// isPruned reports whether a segment is no longer in the list.
func (s *spool) isPruned(first int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.segments) == 0 || first < s.segments[0].first
}

// markSynced records that a check found the entries up to target on the disk.
func (s *spool) markSynced(target chainLink) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.blockedBy == nil && target.seq > s.synced.seq {
		s.synced = target
	}
}

// checkIfWritableAgain tries to write, so that the log becomes healthy again even if there are no calls.
func (s *spool) checkIfWritableAgain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.closed {
		done, err := s.prepareRoom(int64(s.expectedOutcomes+1)*outcomeRoom, false)
		if err != nil {
			return
		}
		if done {
			break
		}
	}
	s.writeError = nil
}

// markSafeInCopy records in the second copy which entries are stored safely elsewhere.
func (s *spool) markSafeInCopy() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.writing && !s.closed {
		s.recent.markSafe(min(s.synced.seq, s.projected))
	}
}

// repairSpool repairs the spool. It writes the entries that may be lost from the second copy into a new segment.
func (s *spool) repairSpool(gone bool) error {
	if err := s.relockDir(); err != nil {
		return err
	}
	if err := s.probeDisk(s.lock); err != nil {
		return err
	}
	s.mu.Lock()
	for s.writing {
		s.writeDone.Wait()
	}
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.writing = true
	base, owed, was := min(s.synced.seq, s.projected), s.expectedOutcomes, s.blockedBy
	s.mu.Unlock()

	there, base, err := s.listChainSegments(s.chain, base)
	again, ok := s.recent.newestLines(base)
	if !ok || again.last != s.durable {
		again = chainLines{prev: s.durable, last: s.durable, at: s.ids.ms}
	}
	var next writeTarget
	if err == nil {
		next, err = s.createReplacementSegment(s.chain, again, int64(owed+1)*outcomeRoom)
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	s.writing = false
	s.writeDone.Broadcast()
	if err != nil {
		return err
	}
	if gone {
		s.deletedAt = time.Now()
	}
	s.segments = s.keepSegmentsUpTo(again.prev.seq, there)
	s.closeAbandonedFiles()
	s.switchWriteTarget(next)
	s.synced, s.blockedBy, s.writeError = s.durable, nil, nil
	s.logger.Info("the activity log is stored again", "after", was, "written_again", again.last.seq-again.prev.seq)
	return nil
}

// closeAbandonedFiles closes files whose state on the disk is unknown. All entries that count were written to other
// files.
func (s *spool) closeAbandonedFiles() {
	for _, f := range s.listOpenFiles() {
		if err := f.Close(); err != nil {
			s.logger.Debug("a segment file of the activity log could not be closed", "error", err)
		}
	}
	s.fullSegments, s.file = nil, nil
}

// relockDir locks the directory again after it was deleted and recreated.
func (s *spool) relockDir() error {
	if ok, err := ondisk.IsFileStillAtPath(s.lockPath(), s.lock.File); err == nil && ok {
		return nil
	}
	lock, err := s.lockDir()
	if err != nil {
		return err
	}
	s.mu.Lock()
	old := s.lock
	s.lock = lock
	s.mu.Unlock()
	if err := old.Close(); err != nil {
		s.logger.Warn("the lock file of the activity log could not be closed", "error", err)
	}
	return nil
}
