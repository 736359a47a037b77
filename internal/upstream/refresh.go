package upstream

import (
	"context"
	"time"
)

// refreshTime is how long Refresh waits for a list.
const refreshTime = 3 * time.Second

// Refresh has the tools of a server listed again, unless they were after
// since, and waits for it a moment. It is for somebody who has seen another
// list than the one that was told to the observer.
func (s *Set) Refresh(ctx context.Context, server string, since time.Time) {
	sv := s.find(server)
	if sv == nil {
		return
	}
	sv.enter()
	defer sv.leave()
	sv.wake()
	limit := time.NewTimer(refreshTime)
	defer limit.Stop()
	for asked := false; ; asked = true {
		sv.mu.Lock()
		listed, again := sv.listedAt, sv.relisted
		sv.mu.Unlock()
		if listed.After(since) {
			return
		}
		if !asked {
			signal(sv.relist)
		}
		select {
		case <-again:
		case <-limit.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// noteListed notes that the observer was told a list that was asked for at
// that time.
func (s *server) noteListed(asked time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listedAt = asked
	s.wakeListed()
}

// noteUnlisted notes that the server has refused to list its tools.
func (s *server) noteUnlisted() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unlisted++
	s.wakeListed()
}

// wakeListed wakes who waits for a list. The lock is held.
func (s *server) wakeListed() {
	close(s.relisted)
	s.relisted = make(chan struct{})
}
