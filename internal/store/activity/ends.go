package activity

import (
	"bytes"
	"log/slog"
	"slices"
	"sync"
)

// maxUnwritten is how much memory outcomes take that wait for the disk. Beyond
// it they are kept without their response.
const maxUnwritten = 4 << 20

// ends writes the outcomes of records. One that cannot be written is kept until
// it can.
type ends struct {
	spool  *spool
	logger *slog.Logger

	retrying sync.Mutex // held by retry, which alone takes from waiting

	mu      sync.Mutex // guards what follows
	waiting []draft
	taken   bool // the outcomes that the process before has kept are taken over
}

// write writes an outcome: as it is, or as much of it as there is room for, or
// else it keeps it.
func (e *ends) write(d draft, p *payload) error {
	_, err := e.spool.append(&d)
	if err == nil {
		return nil
	}
	if d.size() > endRoom {
		short := d
		if short.body = shortOutcome(p); short.size() < d.size() {
			if _, err := e.spool.append(&short); err == nil {
				return nil
			}
		}
	}
	e.keep(d, p)
	return unavailable(err)
}

// shortOutcome is an outcome within endRoom: without its response and, unless
// that is short, its message.
func shortOutcome(p *payload) body {
	short := p.withoutResponse()
	short.Metadata = Metadata{ErrorCode: clip(p.Metadata.ErrorCode, 64)}
	short.ErrorMessage = clip(p.ErrorMessage, 256)
	d := draft{body: newBody(short)}
	if d.size() > endRoom {
		short.Metadata.ErrorCode, short.ErrorMessage = "", ""
		d.body = newBody(short)
	}
	return d.body
}

// keep keeps an outcome that could not be written: the call was made, and its
// record must not stay open because the disk was full for a moment.
func (e *ends) keep(d draft, p *payload) {
	e.mu.Lock()
	defer e.mu.Unlock()
	size := len(d.body.data)
	for i := range e.waiting {
		size += len(e.waiting[i].body.data)
	}
	if size > maxUnwritten {
		d.body = newBody(p.withoutResponse())
	} else {
		d.body.data = bytes.Clone(d.body.data)
	}
	e.waiting = append(e.waiting, d)
	if err := e.spool.keepEnd(&d); err != nil {
		e.logger.Warn("an outcome that cannot be written would not outlive the process", "error", err)
	}
	e.spool.kick.raise()
}

func (e *ends) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.waiting)
}

// none reports whether no outcome waits, of this process or of the one before.
func (e *ends) none() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.taken && len(e.waiting) == 0
}

// retry tries to write the outcomes that wait. They count as waiting until they
// are written.
func (e *ends) retry() {
	e.retrying.Lock()
	defer e.retrying.Unlock()
	e.mu.Lock()
	waiting := slices.Clone(e.waiting)
	e.mu.Unlock()
	written := 0
	for i := range waiting {
		if _, err := e.spool.append(&waiting[i]); err != nil {
			break
		}
		written++
	}
	e.mu.Lock()
	e.waiting = slices.Delete(e.waiting, 0, written)
	e.mu.Unlock()
	e.settle()
}

// settle notes that none needs to outlive the process, when none waits and those
// that the process before has left are taken over.
func (e *ends) settle() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.waiting) == 0 && e.taken {
		if err := e.spool.dropEnds(); err != nil {
			e.logger.Warn("outcomes that are written by now cannot be forgotten", "error", err)
		}
	}
}

// interrupt ends the records that an earlier process left open: those whose id
// is not past what earlier processes can have given. Some have an outcome, which
// that process could not write.
func (e *ends) interrupt(pending []Unfinished, past string) {
	for _, u := range pending {
		if u.ID > past {
			continue
		}
		p := ending(u.Seq, &Outcome{Status: Interrupted, ErrorMessage: "MCPProxy ended before the answer came."})
		end := Facts{Status: Interrupted}
		d := draft{kind: KindEnd, id: u.ID, of: u.Seq}
		if kept, ok := e.spool.kept[u.ID]; ok && kept.Of == u.Seq {
			p.Status, p.DurationMS, p.ErrorMessage = kept.Status, kept.Duration, ""
			d.body, end = bodyOf(kept.Body), Facts{Status: kept.Status, Duration: kept.Duration, Own: kept.Own, ErrorCode: kept.Error}
		} else {
			d.body = newBody(&p)
		}
		d.facts = u.Facts.EndedBy(&end)
		if _, err := e.spool.append(&d); err != nil {
			e.keep(d, &p)
		}
	}
	e.mu.Lock()
	e.taken = true
	e.mu.Unlock()
	e.settle()
}

// keepEnd is recent.keepEnd.
func (s *spool) keepEnd(d *draft) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.recent.keepEnd(d)
}

// dropEnds is recent.dropEnds.
func (s *spool) dropEnds() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.recent.dropEnds()
}
