package transport

import (
	"errors"
	"slices"
	"time"

	"mcpproxy/internal/mcp/session"
)

// orphans are requests whose answers nobody waits for any more, at which the
// server may still be at work: what it says by itself may be about them. It is
// for the only request in flight none the less while all of them are the same
// client's.
type orphans struct {
	all    []orphan  // the oldest first
	beyond time.Time // until then there are more, which nobody knows
}

type orphan struct {
	id    uint64
	owner *session.Owner
	until time.Time
}

// orphanTime is how long a server is taken to be at work on a request that was
// given up, unless it answers before: few say when they stop. Of more than
// maxOrphans nothing is known but the time.
const (
	orphanTime = time.Minute
	maxOrphans = 256
)

// stillAtWork reports whether the server may still be at work on a request that came
// to err: it was given up, or its answer has broken off. It is not when the
// answer has come and cannot be read.
func stillAtWork(err error) bool {
	if err == nil || session.NotSent(err) || errors.Is(err, ErrNoMessage) {
		return false
	}
	_, refused := errors.AsType[*StatusError](err)
	return !refused
}

func (d *orphans) add(s *sent) {
	now := time.Now()
	d.forget(now)
	if len(d.all) == maxOrphans {
		d.beyond = d.all[0].until
		d.all = d.all[1:]
	}
	d.all = append(d.all, orphan{s.id, s.Owner, now.Add(orphanTime)})
}

func (d *orphans) forget(now time.Time) {
	d.all = slices.DeleteFunc(d.all, func(a orphan) bool { return now.After(a.until) })
}

func (d *orphans) answered(id uint64) {
	d.all = slices.DeleteFunc(d.all, func(a orphan) bool { return a.id == id })
}

// byOther reports whether one of them was somebody else's than s is. Of requests
// without an owner nobody knows whose they are.
func (d *orphans) byOther(s *sent) bool {
	if len(d.all) == 0 && d.beyond.IsZero() {
		return false
	}
	now := time.Now()
	d.forget(now)
	return now.Before(d.beyond) || slices.ContainsFunc(d.all, func(a orphan) bool { return a.owner == nil || a.owner != s.Owner })
}
