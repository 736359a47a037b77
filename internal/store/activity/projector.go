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
	batchBytes      = 4 << 20 // approximate maximum in one transaction of the store
	maxAge          = time.Second
	firstRetryDelay = 100 * time.Millisecond
	maxRetryDelay   = 2 * time.Second
	mostLost        = 3 // number of consecutive lost connections that do not count as a failure
	retryEnds       = time.Second
	idleAfter       = 5 * time.Second
	tidyEvery       = time.Minute

	// removeSegments is the minimum number of projected segments, in addition to the spare ones, before they are
	// removed while other work is pending.
	removeSegments = 4
)

// projector moves entries in order from the spool into the store, in one goroutine. It wakes up if many entries wait,
// if an entry is one second old, or if a caller waits.
type projector struct {
	recorder *recordWriter
	outcomes *outcomeWriter
	progress *projectionProgress
	spool    *spool
	store    Store
	retain   func() Retention

	checkpoints checkpointScheduler
	signedBy    string // the public key that was last recorded
	erasing     bool   // whether fields must be erased from the files

	pos    SpoolPosition
	batch  []Entry      // entries that were last read from memory
	reader *spoolReader // set while the projector reads from the files
	// openedAtSeq is the last entry of earlier processes, and openedAtID is the greatest ID that they can have
	// assigned. Unfinished records up to these were interrupted.
	openedAtSeq int64
	openedAtID  string
	resumed     bool
	caughtUp    bool // since the last call of resumeFromStore
	interrupted bool
	clock       clockMonitor
	// entriesLost reports whether the database has entries that the spool lost. In that case, their sequence numbers
	// are used again.
	entriesLost bool
}

// run is the main loop of the projector. It resumes at the position of the store, works until an error occurs, and
// tries again. If the store only lost its connections, this does not count as a failure, and callers keep waiting.
func (p *projector) run(ctx context.Context) {
	lost := 0 // number of consecutive times that the connections were lost
	for wait := firstRetryDelay; ; wait = min(2*wait, maxRetryDelay) {
		began := time.Now()
		err := p.catchUpAndProject(ctx)
		p.closeReader()
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > maxRetryDelay {
			wait = firstRetryDelay
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

// sleepContext waits for d. It returns false if ctx ends first.
func sleepContext(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// catchUpAndProject moves the entries of earlier processes into the store, and ends their interrupted records. Then it
// projects until an error occurs.
func (p *projector) catchUpAndProject(ctx context.Context) error {
	p.caughtUp = false
	if err := p.resumeFromStore(ctx); err != nil {
		return err
	}
	if err := p.projectDurableEntries(ctx); err != nil {
		return err
	}
	if err := p.endInterruptedRecords(ctx); err != nil {
		return err
	}
	p.progress.markStoreWorking()
	p.progress.markCaughtUp()
	p.caughtUp = true
	return p.projectUntilError(ctx)
}

// resumeFromStore finds the position of the store in the spool.
func (p *projector) resumeFromStore(ctx context.Context) error {
	pos, notes, err := p.store.ResumePosition(ctx)
	if err != nil {
		return err
	}
	if pos.Chain != p.spool.chain {
		if pos.Chain != "" {
			notes = append(notes, "The spool was lost or replaced: its hash chain does not match the database.")
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
	p.signedBy, p.erasing = pos.Signer, p.erasing || pos.HasPendingErasures
	p.setPosition(pos)
	p.recorder.recordDamage(notes)
	p.recordSigningKey()
	return p.applyErasuresToSpool(ctx)
}

// recordSigningKey records which key signs the log from now on.
func (p *projector) recordSigningKey() {
	key := p.checkpoints.publicKey()
	if text := hex.EncodeToString(key); key != nil && text != p.signedBy {
		r := newSigningKeyRecord(key)
		if _, err := p.recorder.writeRecord(KindWhole, &r); err != nil {
			p.recorder.logger.Error("the public key of the activity log cannot be recorded", "error", err)
			return
		}
		p.signedBy = text
	}
}

// applyErasuresToSpool applies the erasures in the store to the files of the spool. It retries failures later.
func (p *projector) applyErasuresToSpool(ctx context.Context) error {
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

// projectUntilError projects entries until an error occurs or ctx ends.
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
				err = p.projectDurableEntries(ctx)
			}
		case <-p.progress.asked:
			err = p.projectDurableEntries(ctx)
		case <-age.C:
			aging = false
			err = p.projectDurableEntries(ctx)
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

// projectDurableEntries moves the entries that are durable now into the store. It leaves entries that are appended
// later for the next call, because many small transactions cost more than a few large ones.
func (p *projector) projectDurableEntries(ctx context.Context) error {
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
		if err := p.applyErasuresToSpool(ctx); err != nil {
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

// nextBatch returns the entries after the last projected one, from memory or, if they are not there, from the files.
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

// readBatch returns a batch from the files. At the end of the files it returns an empty batch and closes the reader.
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
			break // return the entries that were read
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
		p.recorder.logger.Warn("a segment file of the activity log could not be closed", "error", err)
	}
	p.reader = nil
	p.recorder.recordDamage(notes)
}

// endInterruptedRecords ends the records that an earlier process left without an outcome.
func (p *projector) endInterruptedRecords(ctx context.Context) error {
	if p.interrupted {
		return nil
	}
	pending, err := p.store.UnfinishedRecords(ctx)
	if err != nil {
		return err
	}
	p.outcomes.endInterruptedRecords(pending, p.openedAtID)
	p.interrupted = true
	return p.projectDurableEntries(ctx)
}

// tidyStore does a short piece of deferred work. It returns when it must be called again.
func (p *projector) tidyStore(ctx context.Context) (again time.Duration, err error) {
	if err := p.spool.pruneSegments(ctx, p.pos.Seq, 1, p.store.Sync); err != nil {
		return 0, err
	}
	if err := p.applyErasuresToSpool(ctx); err != nil {
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

// currentRetention returns the retention limits. It leaves out the age limit while the clock may be wrong.
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
