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

// spoolWatcher checks the spool and repairs it. It is needed because writing through a mapping reports no error when
// the disk fails, and because a deleted file can still be written to.
type spoolWatcher struct{ *spool }

// watch checks the spool until ctx ends. It calls afterCheck after each check.
func (w *spoolWatcher) watch(ctx context.Context, every time.Duration, afterCheck func()) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-w.checkWake:
		}
		w.checkAndRepair()
		afterCheck()
	}
}

// checkAndRepair checks that the files of the spool exist and can be written, and that appended entries are on the
// disk. If a check fails, it blocks new records until the spool is repaired.
func (w *spoolWatcher) checkAndRepair() {
	w.mu.Lock()
	closed := w.closed
	w.mu.Unlock()
	if closed {
		return
	}
	stalled := time.AfterFunc(stalledAfter, func() {
		w.blockNewRecords(fmt.Errorf("the disk of %s has not responded for %s", w.dir, stalledAfter))
	})
	defer stalled.Stop()
	target, syncErr := w.syncFiles()
	err := w.probeDisk(w.lock)      // after the sync, because a sync may seem to succeed on a failing disk
	gone, lostErr := w.checkFiles() // after the sync, because synced entries count only if their files exist
	if err = errors.Join(err, syncErr, lostErr); err == nil {
		w.markSynced(target)
	}
	if err != nil {
		w.blockNewRecords(err)
	}
	w.mu.Lock()
	ill, failing := w.blockedBy != nil, w.writeError != nil
	w.mu.Unlock()
	switch {
	case ill && (err == nil || gone): // a repair may succeed
		if err = w.repairSpool(gone); err != nil {
			w.blockNewRecords(err)
		}
	case failing && err == nil:
		w.checkIfWritableAgain()
	}
	w.replaceDeletedCopy()
	w.markSafeInCopy()
}

// replaceDeletedCopy creates a new second copy if the file of the old one was deleted. This happens at the end of a
// user's login session, which clears the directory.
func (w *spoolWatcher) replaceDeletedCopy() {
	if w.recent.file == nil {
		return
	}
	path := w.recent.file.Name()
	if ok, err := ondisk.IsFileStillAtPath(path, w.recent.file.File); ok || err != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.writing {
		w.writeDone.Wait()
	}
	if w.closed || w.blockedBy != nil {
		return // the next check tries again
	}
	// Sync the entries that only the old copy has.
	for _, f := range w.listOpenFiles() {
		if err := f.Sync(); err != nil {
			w.blockedBy = err
			return
		}
	}
	w.synced = w.durable
	carry, ok := w.recent.newestLines(min(w.synced.seq, w.projected))
	if err := w.recent.close(false); err != nil {
		w.logger.Debug("the file with the second copy of the newest entries could not be closed", "error", err)
	}
	next, _, _, err := openRecentCopy(path)
	if err != nil {
		w.logger.Warn("the newest entries are stored in one location only", "error", err)
		next = newInProcessCopy()
	}
	w.recent = next
	if ok && len(carry.lines) > 0 && next.makeRoom(len(carry.lines), 0) {
		err := next.appendRanges(w.chain, carry.prev, carry.last, carry.at, []blockRange{{data: carry.lines}})
		if err != nil {
			w.logger.Warn("the newest entries are stored in one location only", "error", err)
		}
	}
}

// checkFiles checks that the files exist and that their names still refer to the open files. gone reports whether a
// file was deleted or replaced.
func (w *spoolWatcher) checkFiles() (gone bool, err error) {
	m := w.snapshot()
	if ok, err := ondisk.IsFileStillAtPath(w.lockPath(), w.lock.File); err != nil || !ok {
		return err == nil, errors.Join(err, fmt.Errorf("%s was deleted or replaced", w.dir))
	}
	for i, seg := range m.segments {
		info, err := os.Stat(seg.path)
		switch {
		case errors.Is(err, os.ErrNotExist):
			if w.isPruned(seg.first) {
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
func (w *spoolWatcher) isPruned(first int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.segments) == 0 || first < w.segments[0].first
}

// markSynced records that a check found the entries up to target on the disk.
func (w *spoolWatcher) markSynced(target chainLink) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.blockedBy == nil && target.seq > w.synced.seq {
		w.synced = target
	}
}

// checkIfWritableAgain tries to write, so that the log becomes healthy again even if there are no calls.
func (w *spoolWatcher) checkIfWritableAgain() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for !w.closed {
		done, err := w.prepareRoom(int64(w.expectedOutcomes+1)*outcomeRoom, false)
		if err != nil {
			return
		}
		if done {
			break
		}
	}
	w.writeError = nil
}

// markSafeInCopy records in the second copy which entries are stored safely elsewhere.
func (w *spoolWatcher) markSafeInCopy() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.writing && !w.closed {
		w.recent.markSafe(min(w.synced.seq, w.projected))
	}
}

// repairSpool repairs the spool. It writes the entries that may be lost from the second copy into a new segment.
func (w *spoolWatcher) repairSpool(gone bool) error {
	if err := w.relockDir(); err != nil {
		return err
	}
	if err := w.probeDisk(w.lock); err != nil {
		return err
	}
	w.mu.Lock()
	for w.writing {
		w.writeDone.Wait()
	}
	if w.closed {
		w.mu.Unlock()
		return nil
	}
	w.writing = true
	base, owed, was := min(w.synced.seq, w.projected), w.expectedOutcomes, w.blockedBy
	w.mu.Unlock()

	there, base, err := w.listChainSegments(w.chain, base)
	again, ok := w.recent.newestLines(base)
	if !ok || again.last != w.durable {
		again = chainLines{prev: w.durable, last: w.durable, at: w.ids.ms}
	}
	var next writeTarget
	if err == nil {
		next, err = w.createReplacementSegment(w.chain, again, int64(owed+1)*outcomeRoom)
	}

	w.mu.Lock()
	defer w.mu.Unlock()
	w.writing = false
	w.writeDone.Broadcast()
	if err != nil {
		return err
	}
	if gone {
		w.deletedAt = time.Now()
	}
	w.segments = w.keepSegmentsUpTo(again.prev.seq, there)
	w.closeAbandonedFiles()
	w.switchWriteTarget(next)
	w.synced, w.blockedBy, w.writeError = w.durable, nil, nil
	w.logger.Info("the activity log is stored again", "after", was, "written_again", again.last.seq-again.prev.seq)
	return nil
}

// closeAbandonedFiles closes files whose state on the disk is unknown. All entries that count were written to other
// files.
func (w *spoolWatcher) closeAbandonedFiles() {
	for _, f := range w.listOpenFiles() {
		if err := f.Close(); err != nil {
			w.logger.Debug("a segment file of the activity log could not be closed", "error", err)
		}
	}
	w.fullSegments, w.file = nil, nil
}

// relockDir locks the directory again after it was deleted and recreated.
func (w *spoolWatcher) relockDir() error {
	if ok, err := ondisk.IsFileStillAtPath(w.lockPath(), w.lock.File); err == nil && ok {
		return nil
	}
	lock, err := w.lockDir()
	if err != nil {
		return err
	}
	w.mu.Lock()
	old := w.lock
	w.lock = lock
	w.mu.Unlock()
	if err := old.Close(); err != nil {
		w.logger.Warn("the lock file of the activity log could not be closed", "error", err)
	}
	return nil
}
