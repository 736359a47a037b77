package transport

import (
	"errors"
	"slices"
	"time"

	"mcpproxy/internal/mcp/session"
)

// orphans are abandoned requests that the server may still execute: its notifications may belong to them.
// They go to the only open request only if all orphans belong to the same client.
type orphans struct {
	all    []orphan  // the oldest first
	beyond time.Time // until then there are more orphans than listed
}

type orphan struct {
	id    uint64
	owner *session.Owner
	until time.Time
}

// orphanTime is how long an abandoned request counts as running, unless it is answered. Beyond maxOrphans
// only the time is kept.
const (
	orphanTime = time.Minute
	maxOrphans = 256
)

// mayStillRun reports whether the server may still execute a request that failed with err: it was
// abandoned, or its response is incomplete.
func mayStillRun(err error) bool {
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

// ofOtherOwner reports whether an orphan may belong to another client than s. A request without an owner
// may be anyone's.
func (d *orphans) ofOtherOwner(s *sent) bool {
	if len(d.all) == 0 && d.beyond.IsZero() {
		return false
	}
	now := time.Now()
	d.forget(now)
	return now.Before(d.beyond) || slices.ContainsFunc(d.all, func(a orphan) bool { return a.owner == nil || a.owner != s.Owner })
}
