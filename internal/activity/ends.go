package activity

import "bytes"

// maxUnwritten is how much memory outcomes take that wait for the disk. Beyond
// it they are kept without their response.
const maxUnwritten = 4 << 20

// keepEnd keeps an outcome that could not be written: the call was made, and
// its record must not stay open because the disk was full for a moment.
func (l *Log) keepEnd(d draft, of int64, o *Outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	size := len(d.body)
	for i := range l.unwritten {
		size += len(l.unwritten[i].body)
	}
	if size > maxUnwritten {
		d.body = appendOutcome(nil, of, o, nil, true)
	} else {
		d.body = bytes.Clone(d.body)
	}
	l.unwritten = append(l.unwritten, d)
	l.spool.wake()
}

func (l *Log) unwrittenEnds() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.unwritten)
}

// retryEnds tries to write the outcomes that wait, and says how many are left.
func (l *Log) retryEnds() int {
	l.mu.Lock()
	waiting := l.unwritten
	l.unwritten = nil
	l.mu.Unlock()
	for i := range waiting {
		if _, err := l.spool.append(&waiting[i]); err != nil {
			l.mu.Lock()
			l.unwritten = append(l.unwritten, waiting[i:]...)
			l.mu.Unlock()
			break
		}
	}
	return l.unwrittenEnds()
}

// interrupt ends the records that an earlier process left open: those whose id
// is not past what earlier processes can have given.
func (l *Log) interrupt(pending []Unfinished, past string) {
	o := Outcome{Status: Interrupted, ErrorMessage: "MCPProxy ended before the answer came."}
	for _, p := range pending {
		if p.ID > past {
			continue
		}
		d := draft{kind: KindEnd, id: p.ID, of: p.Seq, facts: p.Facts}
		d.facts.Status = Interrupted
		d.body = appendOutcome(nil, p.Seq, &o, nil, false)
		if _, err := l.spool.append(&d); err != nil {
			l.keepEnd(d, p.Seq, &o)
		}
	}
}
