package upstream

import (
	"context"
	"fmt"
	"time"

	"mcpproxy/internal/link"
)

// Step is how far a server is that connects.
type Step string

// The steps.
const (
	Queued     Step = "queued"     // it waits until others have started
	Installing Step = "installing" // a package manager fetches and starts it, for the first time
	Starting   Step = "starting"   // it starts, or the connection is made
)

// Progress is what a server is at that connects; the zero value is for all others.
type Progress struct {
	Step  Step
	Since time.Time // it is at this step
	Ahead int       // that start before it, when it is queued
	With  string    // the runner, such as npx; "" = none
}

// Progress tells what a server is at. It changes all the time, so that it is no
// part of the State.
func (s *Set) Progress(server string) Progress {
	sv := s.find(server)
	if sv == nil {
		return Progress{}
	}
	return sv.progress(sv.snapshot())
}

func (s *server) progress(st State) Progress {
	if st.Phase != Connecting {
		return Progress{}
	}
	if n, waits := s.place.Load().Ahead(); waits {
		return Progress{Step: Queued, Since: st.Since, Ahead: n, With: s.runner.Name}
	}
	p := Progress{Step: Starting, Since: st.Since, With: s.runner.Name}
	if began := s.began.Load(); began != 0 {
		p.Since = time.Unix(0, began)
	}
	if s.runner.Installs && st.ProtocolVersion == "" {
		p.Step = Installing
	}
	return p
}

// turn waits until the server may start a process.
func (s *server) turn(ctx context.Context) error {
	if s.spec.Transport == Stdio && s.starts != nil {
		p := s.starts.Join(s.runner, s.needed())
		s.place.Store(p)
		for granted := false; !granted; {
			select {
			case <-p.Turn():
				granted = true
			case <-s.nudge:
				if s.needed() {
					p.Hurry()
				}
			case <-ctx.Done():
				s.leavePlace(false)
				return link.ErrStopped
			}
		}
	}
	s.began.Store(time.Now().UnixNano())
	return nil
}

// leavePlace ends the start for those who wait for their turn.
func (s *server) leavePlace(ready bool) { s.place.Swap(nil).Leave(ready) }

// needed reports whether somebody waits for the server to start.
func (s *server) needed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiters > 0 || s.wanted || s.hasty
}

// String says it in a few words, such as "installing with npx, 40 s"; "" for
// the zero value.
func (p Progress) String() string {
	switch p.Step {
	case "":
		return ""
	case Queued:
		if p.Ahead == 0 {
			return "waits for its turn to start, it is the next one"
		}
		return fmt.Sprintf("waits for its turn, %d before it", p.Ahead)
	}
	words := string(p.Step)
	if p.With != "" {
		words += " with " + p.With
	}
	return words + ", " + Seconds(time.Since(p.Since))
}

// Seconds is a time as a person says it.
func Seconds(d time.Duration) string {
	if d < 2*time.Minute {
		return fmt.Sprintf("%d s", int(d.Seconds()))
	}
	return fmt.Sprintf("%d min", int(d.Minutes()))
}
