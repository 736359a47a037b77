package activity

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"
)

const (
	batchBytes = 4 << 20 // in one transaction of the store, about
	maxAge     = time.Second
	retryFirst = 100 * time.Millisecond
	retryLast  = 2 * time.Second
	mostLost   = 3 // times in a row that lost connections are no failure
	retryEnds  = time.Second
	idleAfter  = 5 * time.Second
	tidyEvery  = time.Minute

	// removeSegments is how many projected segments there are, beside those that
	// stay, before they are removed while there is work to do.
	removeSegments = 4
)

// projector moves entries from the spool into the store, in order, in one
// goroutine. It wakes when there are many, when one is a second old, or when
// somebody waits; the rest of the time it sleeps.
type projector struct {
	recorder *recordWriter
	outcomes *outcomeWriter
	progress *projectionProgress
	spool    *spool
	store    Store
	retain   func() Retention

	checkpoints checkpointScheduler
	signedBy    string // the key that is on record
	erasing     bool   // something is to be erased from the files

	pos    SpoolPosition
	batch  []Entry      // what was taken from memory last
	reader *spoolReader // while it reads from the files
	// opened is the last entry of the processes before this one, and past the
	// last id that they can have given: what is pending up to there is
	// interrupted.
	openedAtSeq int64
	openedAtID  string
	resumed     bool
	caughtUp    bool // since it resumed last
	interrupted bool
	clock       clockMonitor
	// lost reports whether the database has entries which the spool has lost, so that
	// their numbers come again.
	entriesLost bool
}

// run is the life of the projector: it resumes where the store stands, serves
// until something fails, and tries again. A store that has only lost its connections
// has not failed: those who wait for the projector go on waiting.
func (p *projector) run(ctx context.Context) {
	lost := 0 // times in a row that the connections were lost
	for wait := retryFirst; ; wait = min(2*wait, retryLast) {
		began := time.Now()
		err := p.catchUpAndServe(ctx)
		p.closeReader()
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > retryLast {
			wait = retryFirst
		}
		if p.caughtUp {
			lost = 0
		}
		if lost++; errors.Is(err, ErrAgain) && lost <= mostLost {
			continue
		}
		lost = 0
		p.progress.markStoreFailed(err)
		if !sleepContext(ctx, wait) {
			return
		}
		p.outcomes.retryWaiting()
	}
}

func sleepContext(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

func (p *projector) catchUpAndServe(ctx context.Context) error {
	p.caughtUp = false
	if err := p.resumeFromStore(ctx); err != nil {
		return err
	}
	if err := p.projectDurable(ctx); err != nil {
		return err
	}
	if err := p.endInterrupted(ctx); err != nil {
		return err
	}
	p.progress.markStoreWorking()
	p.progress.markCaughtUp()
	p.caughtUp = true
	return p.projectUntilError(ctx)
}

// resumeFromStore finds out where the store stands in the spool.
func (p *projector) resumeFromStore(ctx context.Context) error {
	pos, notes, err := p.store.ResumePosition(ctx)
	if err != nil {
		return err
	}
	if pos.Chain != p.spool.chain {
		if pos.Chain != "" {
			notes = append(notes, "The spool was lost or replaced: its chain is not the one that the database continues.")
		}
		pos = SpoolPosition{Chain: p.spool.chain}
	}
	if ahead := pos.Seq - p.openedAtSeq; ahead > 0 && !p.resumed {
		notes = append(notes, fmt.Sprintf("The spool has lost its last %d entries; the database has them.", ahead))
		p.entriesLost = true
	}
	if p.entriesLost {
		pos.Seq = p.openedAtSeq
	}
	p.resumed = true
	p.signedBy, p.erasing = pos.Signer, p.erasing || pos.Erasing
	p.setPosition(pos)
	p.recorder.recordDamage(notes)
	p.recordSigningKey()
	return p.eraseFromSpool(ctx)
}

// recordSigningKey puts on record with which key is signed from now on.
func (p *projector) recordSigningKey() {
	key := p.checkpoints.publicKey()
	if text := hex.EncodeToString(key); key != nil && text != p.signedBy {
		r := newSigningKeyRecord(key)
		if _, err := p.recorder.writeRecord(KindWhole, &r); err != nil {
			p.recorder.logger.Error("the key of the activity log cannot be put on record", "error", err)
			return
		}
		p.signedBy = text
	}
}

// eraseFields erases from the files what is erased in the store. What cannot be done now is
// done later.
func (p *projector) eraseFromSpool(ctx context.Context) error {
	if !p.erasing {
		return nil
	}
	todo, err := p.store.PendingErasures(ctx)
	if err != nil {
		return err
	}
	for _, r := range todo {
		if err := p.spool.eraseFields(r); err != nil {
			return err
		}
	}
	done, err := p.store.FinishErasures(ctx, todo)
	p.erasing = !done
	return err
}

// projectUntilError serves until something fails or ctx ends.
func (p *projector) projectUntilError(ctx context.Context) error {
	age, retry, tidy := newStoppedTimer(), newStoppedTimer(), time.NewTimer(idleAfter)
	defer age.Stop()
	defer retry.Stop()
	defer tidy.Stop()
	aging, retrying := false, false
	for {
		if !retrying && p.outcomes.waitingCount() > 0 {
			retry.Reset(retryEnds)
			retrying = true
		}
		var err error
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-p.spool.projectorWake:
			if p.spool.unprojectedCount() >= MaxBatch {
				err = p.projectDurable(ctx)
			}
		case <-p.progress.asked:
			err = p.projectDurable(ctx)
		case <-age.C:
			aging = false
			err = p.projectDurable(ctx)
		case <-retry.C:
			retrying = false
			p.outcomes.retryWaiting()
		case <-tidy.C:
			var again time.Duration
			again, err = p.tidyStore(ctx)
			tidy.Reset(again)
		}
		if err != nil {
			return err
		}
		switch n := p.spool.unprojectedCount(); {
		case n >= MaxBatch:
			p.spool.projectorWake.wake()
		case n > 0 && !aging:
			age.Reset(maxAge)
			aging = true
		}
	}
}

// projectDurable moves what is durable now into the store. It leaves what is appended
// meanwhile for the next time: many small transactions cost more than few.
func (p *projector) projectDurable(ctx context.Context) error {
	for target := p.spool.lastDurableSeq(); p.pos.Seq < target; {
		entries, err := p.nextBatch()
		if err != nil {
			return err
		}
		if len(entries) == 0 {
			return nil
		}
		last := entries[len(entries)-1]
		pos := SpoolPosition{Chain: p.spool.chain, Seq: last.Seq, Hash: last.Hash, Segment: last.segment, Offset: last.offset, Signer: p.signedBy}
		p.checkpoints.signDueEntries(pos.Chain, entries, p.spool.now())
		if err := p.store.ProjectEntries(ctx, entries, pos); err != nil {
			return err
		}
		p.erasing = p.erasing || slices.ContainsFunc(entries, func(e Entry) bool { return e.Redacts != nil })
		if err := p.eraseFromSpool(ctx); err != nil {
			return err
		}
		p.entriesLost = false
		p.progress.markStoreWorking()
		p.setPosition(pos)
		if err := p.spool.pruneSegments(ctx, pos.Seq, removeSegments, p.store.Sync); err != nil {
			return err
		}
	}
	return nil
}

func (p *projector) setPosition(pos SpoolPosition) {
	p.pos = pos
	p.spool.releaseProjected(pos.Seq)
	p.progress.setProjected(pos.Seq)
}

// readEntry returns the entries that follow what was projected: from memory as long
// as they are there, else from the files.
func (p *projector) nextBatch() ([]Entry, error) {
	for {
		if p.reader == nil {
			clear(p.batch)
			entries, ok := p.spool.takeBatch(p.batch[:0], p.pos.Seq)
			if p.batch = entries; ok {
				return entries, nil
			}
			keep := int64(math.MaxInt64)
			if p.entriesLost {
				keep = p.openedAtSeq
			}
			p.reader = p.spool.newSpoolReader(p.pos, keep)
			if err := p.spool.checkMissingEntries(p.reader); err != nil {
				return nil, err
			}
		}
		entries, err := p.readBatch()
		if err != nil || len(entries) > 0 {
			return entries, err
		}
	}
}

// readSealed returns a batch from the files. At their end it returns none, and closes
// the reader.
func (p *projector) readBatch() ([]Entry, error) {
	var entries []Entry
	for size := 0; len(entries) < MaxBatch && size < batchBytes; {
		e, err := p.reader.readEntry()
		if err == io.EOF {
			if len(entries) == 0 {
				p.setPosition(p.reader.snapshot.end)
				p.closeReader()
			}
			break
		}
		if errors.Is(err, errNotOnDisk) && len(entries) > 0 {
			break // these are
		}
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
		size += len(e.Payload)
	}
	return entries, nil
}

func (p *projector) closeReader() {
	if p.reader == nil {
		return
	}
	notes := p.reader.notes
	if err := p.reader.close(); err != nil {
		p.recorder.logger.Warn("a segment of the activity log did not close", "error", err)
	}
	p.reader = nil
	p.recorder.recordDamage(notes)
}

// endInterrupted ends the records that an earlier process has left without an end.
func (p *projector) endInterrupted(ctx context.Context) error {
	if p.interrupted {
		return nil
	}
	pending, err := p.store.UnfinishedRecords(ctx)
	if err != nil {
		return err
	}
	p.outcomes.endInterrupted(pending, p.openedAtID)
	p.interrupted = true
	return p.projectDurable(ctx)
}

// tidyStore does what can wait, in short pieces, and returns when to come again.
func (p *projector) tidyStore(ctx context.Context) (again time.Duration, err error) {
	if err := p.spool.pruneSegments(ctx, p.pos.Seq, 1, p.store.Sync); err != nil {
		return 0, err
	}
	if err := p.eraseFromSpool(ctx); err != nil {
		return 0, err
	}
	idle := p.spool.isIdle(idleAfter)
	now := p.spool.now()
	more, err := p.store.Tidy(ctx, now, p.currentRetention(now), idle)
	switch {
	case err != nil:
		return 0, err
	case more:
		return 0, nil
	case idle:
		return tidyEvery, nil
	}
	return idleAfter, nil
}

// currentRetention is how much to keep now. Age does not count while the clock may be
// wrong.
func (p *projector) currentRetention(now time.Time) Retention {
	keep := p.retain()
	if !p.clock.isSteady(now, time.Now()) {
		keep.Days = 0
	}
	if p.checkpoints.SigningKey != nil {
		keep.Signer = p.checkpoints.SigningKey
	}
	return keep
}
