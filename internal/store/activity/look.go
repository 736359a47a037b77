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
	lookEvery = time.Second
	// stalledAfter is how long the disk may take to answer a look.
	stalledAfter = 10 * time.Second
)

// watcher looks whether a spool is well, and heals it: what is written through a
// mapping tells nothing when its disk is dead, and a file that was deleted can be
// written to.
type watcher struct{ *spool }

// work looks as long as ctx lives. After each look it calls looked.
func (w *watcher) work(ctx context.Context, every time.Duration, looked func()) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-w.ill:
		}
		w.look()
		looked()
	}
}

// look makes sure that the spool is where it should be and can be written, and
// that what was appended is on the disk. When it is not so, nothing may begin
// until it is.
func (w *watcher) look() {
	w.mu.Lock()
	closed := w.closed
	w.mu.Unlock()
	if closed {
		return
	}
	stalled := time.AfterFunc(stalledAfter, func() {
		w.fallIll(fmt.Errorf("the disk of %s has not answered for %s", w.dir, stalledAfter))
	})
	defer stalled.Stop()
	target, syncErr := w.syncAll()
	err := w.probe(w.lock)       // after the sync, which may seem to go well on a disk that dies meanwhile
	gone, lostErr := w.examine() // after the sync: what was synced counts when it is still there
	if err = errors.Join(err, syncErr, lostErr); err == nil {
		w.foundGood(target)
	}
	if err != nil {
		w.fallIll(err)
	}
	w.mu.Lock()
	ill, failing := w.sick != nil, w.failure != nil
	w.mu.Unlock()
	switch {
	case ill && (err == nil || gone): // the disk may take it
		if err = w.heal(gone); err != nil {
			w.fallIll(err)
		}
	case failing && err == nil:
		w.tryRoom()
	}
	w.keepRecent()
	w.noteSafe()
}

// keepRecent begins a new second copy when the file of the old one was deleted:
// the end of a user's session clears its folder.
func (w *watcher) keepRecent() {
	if w.recent.file == nil {
		return
	}
	path := w.recent.file.Name()
	if ok, err := ondisk.PathNamesFile(path, w.recent.file); ok || err != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.writing {
		w.wrote.Wait()
	}
	if w.closed || w.sick != nil {
		return // the next look tries again
	}
	// What only the old one has comes to the disk first.
	for _, f := range w.files() {
		if err := f.Sync(); err != nil {
			w.sick = err
			return
		}
	}
	w.good = w.durable
	carry, ok := w.recent.newest(min(w.good.seq, w.projected))
	if err := w.recent.close(false); err != nil {
		w.logger.Debug("the second copy of the newest entries did not close", "error", err)
	}
	next, _, _, err := openRecent(path)
	if err != nil {
		w.logger.Warn("the newest entries are kept in one place only", "error", err)
		next = processRecent()
	}
	w.recent = next
	if ok && len(carry.lines) > 0 && next.ready(len(carry.lines), 0) {
		err := next.put(w.chain, carry.prev, carry.last, carry.at, []blockRange{{data: carry.lines}})
		if err != nil {
			w.logger.Warn("the newest entries are kept in one place only", "error", err)
		}
	}
}

// examine looks at the names of the files: each must be there, and be the file
// that is used.
func (w *watcher) examine() (gone bool, err error) {
	m := w.mark()
	if ok, err := ondisk.PathNamesFile(w.lockPath(), w.lock); err != nil || !ok {
		return err == nil, errors.Join(err, fmt.Errorf("%s was deleted or replaced", w.dir))
	}
	for i, seg := range m.segments {
		info, err := os.Stat(seg.path)
		switch {
		case errors.Is(err, os.ErrNotExist):
			if w.pruned(seg.first) {
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

// pruned reports whether a segment was taken off the list.
func (w *watcher) pruned(first int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.segments) == 0 || first < w.segments[0].first
}

// foundGood notes that a look has found entries on the disk.
func (w *watcher) foundGood(target link) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sick == nil && target.seq > w.good.seq {
		w.good = target
	}
}

// tryRoom tries whether what had failed works again, so that this is known
// though nobody calls.
func (w *watcher) tryRoom() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for !w.closed {
		done, err := w.prepare(int64(w.owed+1)*endRoom, false)
		if err != nil {
			return
		}
		if done {
			break
		}
	}
	w.failure = nil
}

// noteSafe tells the second copy what is safe without it.
func (w *watcher) noteSafe() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.writing && !w.closed {
		w.recent.safe(min(w.good.seq, w.projected))
	}
}

// heal makes the spool well: in a new segment stands again, from the second
// copy, what may be lost.
func (w *watcher) heal(gone bool) error {
	if err := w.lockAgain(); err != nil {
		return err
	}
	if err := w.probe(w.lock); err != nil {
		return err
	}
	w.mu.Lock()
	for w.writing {
		w.wrote.Wait()
	}
	if w.closed {
		w.mu.Unlock()
		return nil
	}
	w.writing = true
	base, owed, was := min(w.good.seq, w.projected), w.owed, w.sick
	w.mu.Unlock()

	there, base, err := w.there(w.chain, base)
	again, ok := w.recent.newest(base)
	if !ok || again.last != w.durable {
		again = byteRange{prev: w.durable, last: w.durable, at: w.ids.ms}
	}
	var next place
	if err == nil {
		next, err = w.rewrite(w.chain, again, int64(owed+1)*endRoom)
	}

	w.mu.Lock()
	defer w.mu.Unlock()
	w.writing = false
	w.wrote.Broadcast()
	if err != nil {
		return err
	}
	if gone {
		w.goneAt = time.Now()
	}
	w.segments = w.upTo(again.prev.seq, there)
	w.abandon()
	w.goOnIn(next)
	w.good, w.sick, w.failure = w.durable, nil, nil
	w.logger.Info("the activity log is kept again", "after", was, "written_again", again.last.seq-again.prev.seq)
	return nil
}

// abandon closes the files of which it is not known what the disk has: all that
// counts stands elsewhere by now.
func (w *watcher) abandon() {
	for _, f := range w.files() {
		if err := f.Close(); err != nil {
			w.logger.Debug("a segment of the activity log did not close", "error", err)
		}
	}
	w.retired, w.file = nil, nil
}

// lockAgain locks a folder that was deleted and is made again.
func (w *watcher) lockAgain() error {
	if ok, err := ondisk.PathNamesFile(w.lockPath(), w.lock); err == nil && ok {
		return nil
	}
	lock, err := w.claim()
	if err != nil {
		return err
	}
	w.mu.Lock()
	old := w.lock
	w.lock = lock
	w.mu.Unlock()
	if err := old.Close(); err != nil {
		w.logger.Warn("the lock of the activity log did not close", "error", err)
	}
	return nil
}
