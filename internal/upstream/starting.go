package upstream

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"mcpproxy/internal/link"
	"mcpproxy/internal/startup"
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

// Seconds returns a time as a person says it.
func Seconds(d time.Duration) string {
	if d < 2*time.Minute {
		return fmt.Sprintf("%d s", int(d.Seconds()))
	}
	return fmt.Sprintf("%d min", int(d.Minutes()))
}

// starting is a server's place among those that start.
type starting struct {
	*base
	place atomic.Pointer[startup.Place] // nil when there is none
	began atomic.Int64                  // when the try began, in Unix nanoseconds
}

// queue returns the queue of those that start; nil where nothing waits.
func (s *starting) queue() *startup.Queue {
	if s.Spec.Transport != Stdio {
		return nil
	}
	return s.starts
}

// progress tells what a server of that state is at.
func (s *starting) progress(st *State) Progress {
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

// turn waits until the server may start a process. Whether it is needed is asked
// at each nudge: then it goes before others.
func (s *starting) turn(ctx context.Context, needed func() bool, nudge <-chan struct{}) error {
	if queue := s.queue(); queue != nil {
		p := queue.Join(s.runner, needed())
		s.place.Store(p)
		for granted := false; !granted; {
			select {
			case <-p.Turn():
				granted = true
			case <-nudge:
				if needed() {
					p.Hurry()
				}
			case <-ctx.Done():
				s.leave(false)
				return link.ErrStopped
			}
		}
	}
	s.began.Store(time.Now().UnixNano())
	return nil
}

// leave ends the start for those who wait for their turn.
func (s *starting) leave(ready bool) { s.place.Swap(nil).Leave(ready) }

// since returns for how long the try has run.
func (s *starting) since(now time.Time) time.Duration { return now.Sub(time.Unix(0, s.began.Load())) }
