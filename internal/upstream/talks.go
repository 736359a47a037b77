package upstream

import (
	"context"
	"net/url"
	"sync"
	"time"

	"mcpproxy/internal/problem"
	"mcpproxy/internal/wire"
)

// talks are the conversations of clients with one server.
type talks struct {
	mu     sync.Mutex             // guards what follows
	open   map[*Conversation]bool // whether it is going to end
	client wire.Client            // their connections, which over HTTP may be shared
	closed bool

	crashed time.Time // when a client's process ended by itself
	next    time.Time // when the next one may be started after that
}

// A server whose processes end by themselves is started at a pace: its clients
// all begin anew at once, and starting is dear.
const (
	startPause = 250 * time.Millisecond // between two starts
	crashTime  = 10 * time.Second       // after a process has ended
)

// turn waits until a process may be started for a client.
func (t *talks) turn(ctx context.Context) error {
	for {
		wait := t.take()
		if wait == 0 {
			return nil
		}
		if err := pause(ctx, wait); err != nil {
			return err
		}
	}
}

// take takes the turn when it is free, else it gives the time until it may be.
// Who gives up has taken nothing.
func (t *talks) take() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	wait := t.next.Sub(now)
	if t.closed || wait <= 0 || now.Sub(t.crashed) > crashTime {
		t.next = now.Add(startPause)
		return 0
	}
	return wait
}

// fell notes that a client's process has ended by itself.
func (t *talks) fell() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.crashed = time.Now()
}

// add makes room for c. Over stdio there may be only so many processes: one
// that nobody has used for a while gives way.
func (t *talks) add(c *Conversation, sv *server) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed:
		return notStarted(sv.spec.Name)
	case c.way != bridged && (c.way == shared) != sv.sharing.on.Load(): // it has just been changed; see setShared
		return problem.Newf(problem.ServerUnavailable, "The configuration of server '%s' has just changed", sv.spec.Name).
			WithHint("Try again.").With("server", sv.spec.Name)
	}
	if c.way == own && sv.spec.Transport == Stdio && t.staying() >= maxProcesses && !t.evict(time.Now()) {
		return problem.Newf(problem.Overloaded, "Server '%s' runs %d times already, once for each client, and all are in use.",
			sv.spec.Name, maxProcesses).
			WithHint("End a client that is no longer needed, or set \"session\": \"shared\" for the server.").With("server", sv.spec.Name)
	}
	if t.open == nil {
		t.open = map[*Conversation]bool{}
	}
	t.open[c] = false
	return nil
}

// staying counts those with a session of their own that are not going to end.
// The lock is held.
func (t *talks) staying() int {
	n := 0
	for c, ends := range t.open {
		if !ends && c.way == own {
			n++
		}
	}
	return n
}

// inUse says whether a client has a conversation open that ends with the
// connection.
func (t *talks) inUse() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for c := range t.open {
		if !c.spare.Load() && c.way != shared {
			return true
		}
	}
	return false
}

// evictAfter is for how long a conversation that gives way was not used.
const evictAfter = time.Minute

// evict ends the conversation that was idle for longest. The lock is held.
func (t *talks) evict(now time.Time) bool {
	var oldest *Conversation
	longest := evictAfter
	for c, ends := range t.open {
		if d := c.idleSince(now); !ends && c.way == own && d > longest {
			oldest, longest = c, d
		}
	}
	if oldest == nil {
		return false
	}
	t.open[oldest] = true
	oldest.End()
	return true
}

func (t *talks) remove(c *Conversation) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.open, c)
}

// dialled returns the connections that all conversations share.
func (t *talks) dialled(u *url.URL, spec *Spec) (wire.Client, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.client == nil {
		client, err := spec.dial(u)
		if err != nil {
			return nil, err
		}
		t.client = client
	}
	return lent{t.client}, nil
}

// lent is a client that goes on when one of its users is done.
type lent struct{ wire.Client }

func (lent) Close() {}

// tidy closes connections that have been idle for long.
func (t *talks) tidy(now time.Time) {
	t.mu.Lock()
	client := t.client
	t.mu.Unlock()
	if client != nil {
		client.Reap(now)
	}
}

// endWithConnection ends the conversations that do not outlive the connection of
// everybody, when that is made anew.
func (t *talks) endWithConnection() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for c := range t.open {
		if c.way != shared {
			c.End()
		}
	}
}

// endAll ends all conversations and waits until they have ended; for good when
// there will be no more.
func (t *talks) endAll(forGood bool) {
	t.mu.Lock()
	all := make([]*Conversation, 0, len(t.open))
	for c := range t.open {
		all = append(all, c)
	}
	t.closed = t.closed || forGood
	t.mu.Unlock()
	for _, c := range all {
		c.End()
	}
	if !forGood {
		return
	}
	for _, c := range all {
		<-c.done
	}
	t.mu.Lock()
	client := t.client
	t.client = nil
	t.mu.Unlock()
	if client != nil {
		client.Close()
	}
}
