package transport

import (
	"errors"
	"slices"
	"time"

	"mcpproxy/internal/mcp/session"
)

// orphanedRequests are abandoned requests that the server may still execute. Its notifications may belong to them. They
// go to the only open request only if all orphans belong to the same client.
type orphanedRequests struct {
	all    []orphanedRequest // oldest first
	beyond time.Time         // until this time, there are more orphans than are listed

	// Of orphans that are no longer listed, and may still ask their client. The owner is nil if they are of several clients.
	forgotten bool
	owner     *session.ClientRef
}

type orphanedRequest struct {
	id    uint64
	owner *session.ClientRef
	until time.Time
}

// orphanTime is the time for which an abandoned request counts as running, unless it is answered. If there are more
// than maxOrphans, only the time is stored.
const (
	orphanTime = time.Minute
	maxOrphans = 256
)

// mayStillBeExecuting reports whether the server may still execute a request that failed with err, because it was abandoned or
// its response is incomplete.
func mayStillBeExecuting(err error) bool {
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
		d.forget(d.all[0])
		d.all = d.all[1:]
	}
	d.all = append(d.all, orphanedRequest{s.id, s.Owner, now.Add(orphanTime)})
}

func (d *orphanedRequests) dropExpired(now time.Time) {
	d.all = slices.DeleteFunc(d.all, func(a orphanedRequest) bool {
		expired := now.After(a.until)
		if expired {
			d.forget(a)
		}
		return expired
	})
}

// forget removes an orphan from the list and stores its owner.
func (d *orphanedRequests) forget(a orphanedRequest) {
	if d.forgotten && d.owner != a.owner {
		a.owner = nil
	}
	d.forgotten, d.owner = true, a.owner
}

func (d *orphanedRequests) dropAnswered(id uint64) {
	d.all = slices.DeleteFunc(d.all, func(a orphanedRequest) bool { return a.id == id })
}

// hasOtherOwner reports whether an orphan may belong to another client than s. A request without an owner may belong to
// any client.
func (d *orphanedRequests) hasOtherOwner(s *sentRequest) bool {
	if len(d.all) == 0 && d.beyond.IsZero() {
		return false
	}
	now := time.Now()
	d.dropExpired(now)
	return now.Before(d.beyond) || slices.ContainsFunc(d.all, func(a orphanedRequest) bool { return a.owner == nil || a.owner != s.Owner })
}

// mayAsk reports whether an orphan of another client than s may ask a question. That has no time limit: a server does not
// answer a request that was cancelled, and may still be working on it.
func (d *orphanedRequests) mayAsk(s *sentRequest) bool {
	return d.forgotten && (d.owner == nil || d.owner != s.Owner) ||
		slices.ContainsFunc(d.all, func(a orphanedRequest) bool { return a.owner == nil || a.owner != s.Owner })
}
