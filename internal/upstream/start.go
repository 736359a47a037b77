package upstream

import (
	"context"
	"fmt"
	"time"

	"mcpproxy/internal/mcp/transport"
	"mcpproxy/internal/upstream/process"
)

// StartStep is the step of a server that is connecting.
type StartStep string

// The steps.
const (
	Queued     StartStep = "queued"     // waits for a start slot
	Installing StartStep = "installing" // a package manager fetches and starts it for the first time
	Starting   StartStep = "starting"   // starts, or connects
)

// StartProgress is the progress of a connecting server; zero for all others.
type StartProgress struct {
	Step         StartStep
	Since        time.Time // start of this step
	QueuedBefore int       // servers ahead in the queue
	Runner       string    // such as npx; "" if there is none
	// Trouble is the reason why the runner cannot fetch the package, in MCPProxy's own words; "" if unknown.
	Trouble string
}

// String returns a short text, such as "installing with npx, 40 s", or "" for the zero value.
func (p StartProgress) String() string {
	switch p.Step {
	case "":
		return ""
	case Queued:
		if p.QueuedBefore == 0 {
			return "waits to start, and is the next server"
		}
		return fmt.Sprintf("waits to start, servers before it: %d", p.QueuedBefore)
	}
	words := string(p.Step)
	if p.Runner != "" {
		words += " with " + p.Runner
	}
	words += ", " + FormatSeconds(time.Since(p.Since))
	if p.Trouble != "" {
		words += "; " + p.Trouble
	}
	return words
}

// FormatSeconds returns a readable duration.
func FormatSeconds(d time.Duration) string {
	if d < 2*time.Minute {
		return fmt.Sprintf("%d s", int(d.Seconds()))
	}
	return fmt.Sprintf("%d min", int(d.Minutes()))
}

// startQueue returns the start queue, or nil if the server does not have to wait.
func (b *serverBase) startQueue() *process.StartQueue {
	if b.Spec.Transport != Stdio {
		return nil
	}
	return b.starts
}

// startProgress returns the progress of a server in that state.
func (b *serverBase) startProgress(st *State) StartProgress {
	if st.Phase != Connecting {
		return StartProgress{}
	}
	if n, waits := b.startSlot.Load().SlotsAhead(); waits {
		return StartProgress{Step: Queued, Since: st.Since, QueuedBefore: n, Runner: b.runner.Name}
	}
	p := StartProgress{Step: Starting, Since: st.Since, Runner: b.runner.Name}
	if began := b.tryStarted.Load(); began != 0 {
		p.Since = time.Unix(0, began)
	}
	if b.runner.Installs && st.ProtocolVersion == "" {
		p.Step, p.Trouble = Installing, b.startSlot.Load().DownloadProblem()
	}
	return p
}

// waitForStartSlot waits until the server may start a process. A server that a caller needs goes first.
func (b *serverBase) waitForStartSlot(ctx context.Context) error {
	if queue := b.startQueue(); queue != nil {
		p := queue.Join(b.runner, b.availability.isNeeded())
		b.startSlot.Store(p)
		for granted := false; !granted; {
			select {
			case <-p.TurnGranted():
				granted = true
			case <-b.availability.needed:
				if b.availability.isNeeded() {
					p.MakeUrgent()
				}
			case <-ctx.Done():
				b.releaseStartSlot(false)
				return transport.ErrStopped
			}
		}
	}
	b.tryStarted.Store(time.Now().UnixNano())
	return nil
}

// releaseStartSlot releases the server's slot in the start queue.
func (b *serverBase) releaseStartSlot(ready bool) { b.startSlot.Swap(nil).Release(ready) }

// currentAttemptDuration returns how long the current attempt has been running.
func (b *serverBase) currentAttemptDuration(now time.Time) time.Duration {
	return now.Sub(time.Unix(0, b.tryStarted.Load()))
}
