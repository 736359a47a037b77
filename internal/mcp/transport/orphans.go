package transport

import (
	"errors"
	"slices"
	"time"

	"mcpproxy/internal/mcp/session"
)

// orphanedRequests are abandoned requests that the server may still execute: its notifications may belong to them.
// They go to the only open request only if all orphans belong to the same client.
type orphanedRequests struct {
	all    []orphanedRequest // the oldest first
	beyond time.Time         // until then there are more orphans than listed
}

type orphanedRequest struct {
	id    uint64
	owner *session.ClientRef
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
	if err == nil || session.IsNotSent(err) || errors.Is(err, ErrNoMessage) {
		return false
	}
	_, refused := errors.AsType[*StatusError](err)
	return !refused
}

func (d *orphanedRequests) addRequest(s *sentRequest) {
	now := time.Now()
	d.dropExpired(now)
	if len(d.all) == maxOrphans {
		d.beyond = d.all[0].until
		d.all = d.all[1:]
	}
	d.all = append(d.all, orphanedRequest{s.id, s.Owner, now.Add(orphanTime)})
}

func (d *orphanedRequests) dropExpired(now time.Time) {
	d.all = slices.DeleteFunc(d.all, func(a orphanedRequest) bool { return now.After(a.until) })
}

func (d *orphanedRequests) dropAnswered(id uint64) {
	d.all = slices.DeleteFunc(d.all, func(a orphanedRequest) bool { return a.id == id })
}

// hasOtherOwner reports whether an orphan may belong to another client than s. A request without an owner
// may be anyone's.
func (d *orphanedRequests) hasOtherOwner(s *sentRequest) bool {
	if len(d.all) == 0 && d.beyond.IsZero() {
		return false
	}
	now := time.Now()
	d.dropExpired(now)
	return now.Before(d.beyond) || slices.ContainsFunc(d.all, func(a orphanedRequest) bool { return a.owner == nil || a.owner != s.Owner })
}
