package upstream

import (
	"context"
	"fmt"
	"time"

	"mcpproxy/internal/mcp/transport"
	"mcpproxy/internal/upstream/process"
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
	// Trouble is what keeps the runner from fetching, in our own words; "" = nothing is known.
	Trouble string
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
	words += ", " + Seconds(time.Since(p.Since))
	if p.Trouble != "" {
		words += "; " + p.Trouble
	}
	return words
}

// Seconds returns a time as a person says it.
func Seconds(d time.Duration) string {
	if d < 2*time.Minute {
		return fmt.Sprintf("%d s", int(d.Seconds()))
	}
	return fmt.Sprintf("%d min", int(d.Minutes()))
}

// queue returns the queue of those that start; nil where nothing waits.
func (b *base) queue() *process.StartQueue {
	if b.Spec.Transport != Stdio {
		return nil
	}
	return b.starts
}

// progress tells what a server of that state is at.
func (b *base) progress(st *State) Progress {
	if st.Phase != Connecting {
		return Progress{}
	}
	if n, waits := b.place.Load().Ahead(); waits {
		return Progress{Step: Queued, Since: st.Since, Ahead: n, With: b.runner.Name}
	}
	p := Progress{Step: Starting, Since: st.Since, With: b.runner.Name}
	if began := b.began.Load(); began != 0 {
		p.Since = time.Unix(0, began)
	}
	if b.runner.Installs && st.ProtocolVersion == "" {
		p.Step, p.Trouble = Installing, b.place.Load().Trouble()
	}
	return p
}

// turn waits until the server may start a process. One that somebody needs goes
// before others.
func (b *base) turn(ctx context.Context) error {
	if queue := b.queue(); queue != nil {
		p := queue.Join(b.runner, b.availability.needed())
		b.place.Store(p)
		for granted := false; !granted; {
			select {
			case <-p.Turn():
				granted = true
			case <-b.availability.nudge:
				if b.availability.needed() {
					p.Hurry()
				}
			case <-ctx.Done():
				b.leavePlace(false)
				return transport.ErrStopped
			}
		}
	}
	b.began.Store(time.Now().UnixNano())
	return nil
}

// leavePlace ends the start for those who wait for their turn.
func (b *base) leavePlace(ready bool) { b.place.Swap(nil).Leave(ready) }

// tried returns for how long the last try has run.
func (b *base) tried(now time.Time) time.Duration { return now.Sub(time.Unix(0, b.began.Load())) }
