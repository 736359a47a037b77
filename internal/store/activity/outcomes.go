package activity

import (
	"bytes"
	"log/slog"
	"slices"
	"sync"
)

// maxWaitingBytes limits the memory for outcomes that could not be written yet. Above it, outcomes are kept without
// their response.
const maxWaitingBytes = 4 << 20

// outcomeWriter writes the outcomes of records. It keeps an outcome that cannot be written, and retries until it
// succeeds.
type outcomeWriter struct {
	spool  *spool
	logger *slog.Logger

	retrying sync.Mutex // held by retryWaiting, the only function that removes from waiting

	mu           sync.Mutex // guards the fields below
	waiting      []entryDraft
	earlierTaken bool // whether this process has read the outcomes that the previous process kept
}

// write writes an outcome. It shortens the outcome if there is not enough room. If that fails too, it keeps the outcome
// for a retry.
func (e *outcomeWriter) write(d entryDraft, p *payload) error {
	_, err := e.spool.appendEntry(&d)
	if err == nil {
		return nil
	}
	if d.maxSize() > outcomeRoom {
		short := d
		if short.body = encodeShortOutcome(p); short.maxSize() < d.maxSize() {
			if _, err := e.spool.appendEntry(&short); err == nil {
				return nil
			}
		}
	}
	e.keepUntilWritable(d, p)
	return newUnwritableError(err)
}

// encodeShortOutcome encodes an outcome so that it fits in outcomeRoom: without its response, and with a shortened error
// code and error message. If that is still too long, it leaves out both.
func encodeShortOutcome(p *payload) encodedBody {
	short := p.withoutResponse()
	short.Metadata = Metadata{ErrorCode: clipText(p.Metadata.ErrorCode, 64)}
	short.ErrorMessage = clipText(p.ErrorMessage, 256)
	d := entryDraft{body: encodeBodyInNewBuffer(short)}
	if d.maxSize() > outcomeRoom {
		short.Metadata.ErrorCode, short.ErrorMessage = "", ""
		d.body = encodeBodyInNewBuffer(short)
	}
	return d.body
}

// keepUntilWritable keeps an outcome that could not be written. The call was made, so its record must not stay without
// an outcome because the disk was full for a moment.
func (e *outcomeWriter) keepUntilWritable(d entryDraft, p *payload) {
	e.mu.Lock()
	defer e.mu.Unlock()
	size := len(d.body.data)
	for i := range e.waiting {
		size += len(e.waiting[i].body.data)
	}
	if size > maxWaitingBytes {
		d.body = encodeBodyInNewBuffer(p.withoutResponse())
	} else {
		d.body.data = bytes.Clone(d.body.data)
	}
	e.waiting = append(e.waiting, d)
	if err := e.spool.backUpOutcome(&d); err != nil {
		e.logger.Warn("an outcome cannot be written, and is lost if the process ends", "error", err)
	}
	e.spool.projectorWake.wake()
}

func (e *outcomeWriter) waitingCount() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.waiting)
}

// isDrained reports whether all outcomes of this process and the previous one were written.
func (e *outcomeWriter) isDrained() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.earlierTaken && len(e.waiting) == 0
}

// retryWaiting tries to write the waiting outcomes. An outcome counts as waiting until it is written.
func (e *outcomeWriter) retryWaiting() {
	e.retrying.Lock()
	defer e.retrying.Unlock()
	e.mu.Lock()
	waiting := slices.Clone(e.waiting)
	e.mu.Unlock()
	written := 0
	for i := range waiting {
		if _, err := e.spool.appendEntry(&waiting[i]); err != nil {
			break
		}
		written++
	}
	e.mu.Lock()
	e.waiting = slices.Delete(e.waiting, 0, written)
	e.mu.Unlock()
	e.clearBackupIfDrained()
}

// clearBackupIfDrained deletes the outcomes that are stored outside of the process, if no outcome waits and those of
// the previous process were read.
func (e *outcomeWriter) clearBackupIfDrained() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.waiting) == 0 && e.earlierTaken {
		if err := e.spool.clearOutcomeBackup(); err != nil {
			e.logger.Warn("outcomes that are already written cannot be deleted", "error", err)
		}
	}
}

// endInterruptedRecords ends the records that earlier processes left without an outcome, up to the ID past. For some of
// them, it writes the outcome that the earlier process could not write.
func (e *outcomeWriter) endInterruptedRecords(pending []UnfinishedRecord, past string) {
	for _, u := range pending {
		if u.ID > past {
			continue
		}
		p := newOutcomePayload(u.Seq, &Outcome{Status: Interrupted, ErrorMessage: "MCPProxy stopped before the response arrived."})
		end := RecordFacts{Status: Interrupted}
		d := entryDraft{kind: KindEnd, id: u.ID, of: u.Seq}
		if kept, ok := e.spool.keptOutcomes[u.ID]; ok && kept.Of == u.Seq {
			p.Status, p.DurationMS, p.ErrorMessage = kept.Status, kept.Duration, ""
			d.body, end = parseEncodedBody(kept.Body), RecordFacts{Status: kept.Status, Duration: kept.Duration, OwnTime: kept.Own, ErrorCode: kept.Error}
		} else {
			d.body = encodeBodyInNewBuffer(&p)
		}
		d.facts = u.Facts.WithOutcome(&end)
		if _, err := e.spool.appendEntry(&d); err != nil {
			e.keepUntilWritable(d, &p)
		}
	}
	e.mu.Lock()
	e.earlierTaken = true
	e.mu.Unlock()
	e.clearBackupIfDrained()
}

// backUpOutcome stores an outcome in the second copy.
func (s *spool) backUpOutcome(d *entryDraft) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.recent.backUpOutcome(d)
}

// clearOutcomeBackup deletes the outcomes in the second copy.
func (s *spool) clearOutcomeBackup() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.recent.clearOutcomeBackup()
}
