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
	recorder *recorder
	ends     *ends
	progress *progress
	spool    *spool
	store    Store
	retain   func() Retention

	checkpoints checkpoints
	signedBy    string // the key that is on record
	erasing     bool   // something is to be erased from the files

	pos    Position
	batch  []Entry      // what was taken from memory last
	reader *spoolReader // while it reads from the files
	// opened is the last entry of the processes before this one, and past the
	// last id that they can have given: what is pending up to there is
	// interrupted.
	opened      int64
	past        string
	resumed     bool
	caughtUp    bool // since it resumed last
	interrupted bool
	clock       clockWatch
	// lost reports whether the database has entries which the spool has lost, so that
	// their numbers come again.
	lost bool
}

// work is the life of the projector: it resumes where the store stands, serves
// until something fails, and tries again. A store that has only lost its connections
// has not failed: those who wait for the projector go on waiting.
func (p *projector) work(ctx context.Context) {
	lost := 0 // times in a row that the connections were lost
	for wait := retryFirst; ; wait = min(2*wait, retryLast) {
		began := time.Now()
		err := p.serve(ctx)
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
		p.progress.failed(err)
		if !sleep(ctx, wait) {
			return
		}
		p.ends.retry()
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

func (p *projector) serve(ctx context.Context) error {
	p.caughtUp = false
	if err := p.resume(ctx); err != nil {
		return err
	}
	if err := p.project(ctx); err != nil {
		return err
	}
	if err := p.interrupt(ctx); err != nil {
		return err
	}
	p.progress.works()
	p.progress.caughtUp()
	p.caughtUp = true
	return p.loop(ctx)
}

// resume finds out where the store stands in the spool.
func (p *projector) resume(ctx context.Context) error {
	pos, notes, err := p.store.Resume(ctx)
	if err != nil {
		return err
	}
	if pos.Chain != p.spool.chain {
		if pos.Chain != "" {
			notes = append(notes, "The spool was lost or replaced: its chain is not the one that the database continues.")
		}
		pos = Position{Chain: p.spool.chain}
	}
	if ahead := pos.Seq - p.opened; ahead > 0 && !p.resumed {
		notes = append(notes, fmt.Sprintf("The spool has lost its last %d entries; the database has them.", ahead))
		p.lost = true
	}
	if p.lost {
		pos.Seq = p.opened
	}
	p.resumed = true
	p.signedBy, p.erasing = pos.Signer, p.erasing || pos.Erasing
	p.advance(pos)
	p.recorder.tell(notes)
	p.tellKey()
	return p.erase(ctx)
}

// tellKey puts on record with which key is signed from now on.
func (p *projector) tellKey() {
	key := p.checkpoints.public()
	if text := hex.EncodeToString(key); key != nil && text != p.signedBy {
		r := keyRecord(key)
		if _, err := p.recorder.write(KindWhole, &r); err != nil {
			p.recorder.logger.Error("the key of the activity log cannot be put on record", "error", err)
			return
		}
		p.signedBy = text
	}
}

// erase erases from the files what is erased in the store. What cannot be done now is
// done later.
func (p *projector) erase(ctx context.Context) error {
	if !p.erasing {
		return nil
	}
	todo, err := p.store.Erasing(ctx)
	if err != nil {
		return err
	}
	for _, r := range todo {
		if err := p.spool.erase(r); err != nil {
			return err
		}
	}
	done, err := p.store.Erased(ctx, todo)
	p.erasing = !done
	return err
}

// loop serves until something fails or ctx ends.
func (p *projector) loop(ctx context.Context) error {
	age, retry, tidy := stopped(), stopped(), time.NewTimer(idleAfter)
	defer age.Stop()
	defer retry.Stop()
	defer tidy.Stop()
	aging, retrying := false, false
	for {
		if !retrying && p.ends.count() > 0 {
			retry.Reset(retryEnds)
			retrying = true
		}
		var err error
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-p.spool.kick:
			if p.spool.behind() >= MaxBatch {
				err = p.project(ctx)
			}
		case <-p.progress.asked:
			err = p.project(ctx)
		case <-age.C:
			aging = false
			err = p.project(ctx)
		case <-retry.C:
			retrying = false
			p.ends.retry()
		case <-tidy.C:
			var again time.Duration
			again, err = p.tidy(ctx)
			tidy.Reset(again)
		}
		if err != nil {
			return err
		}
		switch n := p.spool.behind(); {
		case n >= MaxBatch:
			p.spool.kick.raise()
		case n > 0 && !aging:
			age.Reset(maxAge)
			aging = true
		}
	}
}

// project moves what is durable now into the store. It leaves what is appended
// meanwhile for the next time: many small transactions cost more than few.
func (p *projector) project(ctx context.Context) error {
	for target := p.spool.end(); p.pos.Seq < target; {
		entries, err := p.next()
		if err != nil {
			return err
		}
		if len(entries) == 0 {
			return nil
		}
		last := entries[len(entries)-1]
		pos := Position{Chain: p.spool.chain, Seq: last.Seq, Hash: last.Hash, Segment: last.segment, Offset: last.offset, Signer: p.signedBy}
		p.checkpoints.add(pos.Chain, entries, p.spool.now())
		if err := p.store.Project(ctx, entries, pos); err != nil {
			return err
		}
		p.erasing = p.erasing || slices.ContainsFunc(entries, func(e Entry) bool { return e.Redacts != nil })
		if err := p.erase(ctx); err != nil {
			return err
		}
		p.lost = false
		p.progress.works()
		p.advance(pos)
		if err := p.spool.prune(ctx, pos.Seq, removeSegments, p.store.Sync); err != nil {
			return err
		}
	}
	return nil
}

func (p *projector) advance(pos Position) {
	p.pos = pos
	p.spool.release(pos.Seq)
	p.progress.reached(pos.Seq)
}

// next returns the entries that follow what was projected: from memory as long
// as they are there, else from the files.
func (p *projector) next() ([]Entry, error) {
	for {
		if p.reader == nil {
			clear(p.batch)
			entries, ok := p.spool.take(p.batch[:0], p.pos.Seq)
			if p.batch = entries; ok {
				return entries, nil
			}
			keep := int64(math.MaxInt64)
			if p.lost {
				keep = p.opened
			}
			p.reader = p.spool.readFrom(p.pos, keep)
			if err := p.spool.missed(p.reader); err != nil {
				return nil, err
			}
		}
		entries, err := p.read()
		if err != nil || len(entries) > 0 {
			return entries, err
		}
	}
}

// read returns a batch from the files. At their end it returns none, and closes
// the reader.
func (p *projector) read() ([]Entry, error) {
	var entries []Entry
	for size := 0; len(entries) < MaxBatch && size < batchBytes; {
		e, err := p.reader.next()
		if err == io.EOF {
			if len(entries) == 0 {
				p.advance(p.reader.until.end)
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
	p.recorder.tell(notes)
}

// interrupt ends the records that an earlier process has left without an end.
func (p *projector) interrupt(ctx context.Context) error {
	if p.interrupted {
		return nil
	}
	pending, err := p.store.Pending(ctx)
	if err != nil {
		return err
	}
	p.ends.interrupt(pending, p.past)
	p.interrupted = true
	return p.project(ctx)
}

// tidy does what can wait, in short pieces, and returns when to come again.
func (p *projector) tidy(ctx context.Context) (again time.Duration, err error) {
	if err := p.spool.prune(ctx, p.pos.Seq, 1, p.store.Sync); err != nil {
		return 0, err
	}
	if err := p.erase(ctx); err != nil {
		return 0, err
	}
	idle := p.spool.idle(idleAfter)
	now := p.spool.now()
	more, err := p.store.Tidy(ctx, now, p.retention(now), idle)
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

// retention is how much to keep now. Age does not count while the clock may be
// wrong.
func (p *projector) retention(now time.Time) Retention {
	keep := p.retain()
	if !p.clock.steady(now, time.Now()) {
		keep.Days = 0
	}
	if p.checkpoints.Key != nil {
		keep.Signer = p.checkpoints.Key
	}
	return keep
}
