package upstream

import (
	"context"
	"errors"
	"time"

	"mcpproxy/internal/link"
	"mcpproxy/internal/session"
)

// A server that announces that its tools have changed is known to do something
// else than what calls were judged on, until it has listed them again. Calls
// wait meanwhile: each for a list that was asked for after the last change that
// was announced before the call, so that a server which announces changes all
// the time delays them by two lists at most.

// ToolsChanged takes note that the server has announced a change. It is called
// by who reads the connection, before anything that the server says later is
// handed on.
func (s *server) ToolsChanged() {
	s.announced.Add(1)
	signal(s.relist)
}

// stale reports whether a change of the tools was announced that is not on the
// list of l.
func (s *server) stale(l *liveLink) bool { return l.upTo.Load() < s.announced.Load() }

// errUnlisted says that a change was announced and could not be listed in time.
var errUnlisted = errors.New("the changed tools are not listed yet")

// awaitList waits for a list with the changes that were announced so far: until
// it is there, the server has refused to list them, or ctx or l ends.
func (s *server) awaitList(ctx context.Context, l *liveLink) error {
	announced, failures := s.announced.Load(), uint64(0)
	for first := true; ; first = false {
		s.mu.Lock()
		failed, told := s.unlisted, s.relisted
		s.mu.Unlock()
		if first {
			failures = failed
		}
		switch {
		case l.upTo.Load() >= announced:
			return nil
		case l.link.Cause() != nil:
			return &session.NotSentError{Cause: l.link.Cause()}
		case failed != failures:
			return errUnlisted
		}
		signal(s.awaited)
		select {
		case <-told:
		case <-l.link.Done():
		case <-s.done:
			return errUnlisted
		case <-ctx.Done():
			if session.TimeIsUp(ctx) {
				return errUnlisted
			}
			return ctx.Err()
		}
	}
}

// current returns the connection when the server's list is up to date, and
// reports whether that had to be waited for.
func (s *server) current(ctx context.Context, r *session.Request) (l *liveLink, waited bool, err error) {
	for {
		if l := s.live.Load(); !l.usable() {
			waited = true
		}
		l, err := s.ready(ctx)
		if err != nil || r.Judged.Listed() == nil || !s.stale(l) {
			return l, waited, err
		}
		waited = true
		if err = s.awaitList(ctx, l); err == nil || l.link.Cause() == nil {
			return l, waited, err
		}
	}
}

// recheck decides once more about a call that has waited since it was judged:
// for a connection, a session, an answer of the client. own is the client's
// session with the server, if the call goes there.
func (s *Set) recheck(ctx context.Context, sv *server, l *liveLink, own *Conversation, r *session.Request) error {
	if r.Judged.Listed() != nil && sv.stale(l) {
		if err := sv.awaitList(ctx, l); err != nil {
			return err
		}
	}
	if err := r.Judged.Recheck(); err != nil {
		return err
	}
	if !l.stillLists(r) {
		return sv.changedTool(r)
	}
	return s.sameInSession(ctx, sv, own, r)
}

// listAgain lists the tools after a change. A list that cannot be read leaves
// the old one standing, unless the link is lost; but no call is sent before the
// changes that were announced are listed.
func (s *server) listAgain(ctx context.Context, l *liveLink) (listed bool, err error) {
	lctx, cancel := context.WithTimeout(ctx, defaultConnectTime)
	defer cancel()
	start, announced := time.Now(), s.announced.Load()
	tools, err := s.listTools(lctx, l.link, l.greeting)
	if err == nil {
		s.publish(l, tools)
		l.upTo.Store(announced)
		s.noteListed(start)
		return true, nil
	}
	if cause := l.link.Cause(); cause != nil {
		return false, cause
	}
	if ctx.Err() != nil {
		return false, link.ErrStopped
	}
	if lctx.Err() == nil {
		s.noteUnlisted()
	}
	s.Remark("the changed tools could not be listed: " + err.Error())
	s.opt.Logger.Warn("tools not listed", "server", s.spec.Name, "error", s.mask.Err(err))
	return false, nil
}

// relists says when a server is asked for its tools again.
type relists struct {
	due    <-chan time.Time // nil: it is not planned
	at     time.Time
	ended  time.Time     // the last time
	took   time.Duration // then
	failed int           // in a row
}

// awaitedPause is the least time between two lists that calls wait for. It is
// four times what a list takes, up to relistPause, so that lists without end take
// a fifth of a processor at most.
const awaitedPause = 20 * time.Millisecond

// plan has the tools listed when that pause has passed since the last time, if
// that is not planned for an earlier time.
func (r *relists) plan(pause time.Duration) {
	at := r.ended.Add(pause)
	if r.due != nil && !at.Before(r.at) {
		return
	}
	r.at, r.due = at, time.After(time.Until(at))
}

// planAwaited plans a list that a call waits for.
func (r *relists) planAwaited() {
	r.plan(min(max(awaitedPause, 4*r.took), relistPause))
}

// done notes how it went. What was announced and could not be listed is asked
// for again, at growing intervals.
func (r *relists) done(began time.Time, listed bool) {
	r.due, r.ended = nil, time.Now()
	r.took = r.ended.Sub(began)
	if listed {
		r.failed = 0
		return
	}
	r.failed++
	r.plan(min(relistPause<<min(r.failed, 10), blindPause))
}
