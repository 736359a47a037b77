package upstream

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"time"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/transport"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/upstream/process"
)

// Clients are those who have something open with one server.
type Clients interface {
	// Connected is told of each connection before anybody gets it.
	Connected(c *Connection)
	// Heard gets what the server says on the connection that is about no request,
	// and reports whether there is anybody whom it may concern.
	Heard(method string, params json.RawMessage) bool
	// InUse reports whether something is open that needs the server.
	InUse() bool
	// End ends what is open.
	End(what Ending)
}

// Ending is what of its clients a server ends, from little to all.
type Ending uint8

// The endings. The last one waits until all has ended; the others return at once.
const (
	Spare    Ending = iota // what is kept for requests to come
	Restart                // what does not outlive a restart that a person asks for
	Sessions               // all sessions
	ForGood                // everything: nothing will be opened any more
)

// Server keeps one wanted server connected. Its parts have each their own state;
// what happens to the connection happens in the one goroutine of run.
type Server struct {
	*base
	Clients Clients

	usage
	handshake
	dialer  dialer
	listing listing
	failing failing

	open   func() (transport.Link, error) // makes a link that reports to this server
	shared atomic.Bool                    // clients that come now share the connection

	reoffer   chan struct{} // cap 1: the prompts or resources have changed
	suspicion chan struct{} // cap 1: try whether the connection works
	verdict   chan struct{} // cap 1: the server fails every call, or does not any more
	slept     bool          // since the last connection; run alone looks at it

	reviewed bool               // that Apply was last told so; guarded by Set.mu
	cancel   context.CancelFunc // ends run
}

// newServer makes a server; run starts it.
func newServer(spec Spec, around *shared, clients func(*Server) Clients) *Server {
	b := newBase(spec, around)
	s := &Server{base: b, handshake: handshake{base: b}, listing: newListing(),
		reoffer: make(chan struct{}, 1), suspicion: make(chan struct{}, 1), verdict: make(chan struct{}, 1)}
	s.usage.born, s.usage.paced = time.Now(), make(chan struct{}, 1)
	s.usage.pace.Store(spec.pace())
	s.dialer.base, s.dialer.budget = b, transport.NewBudget(around.MaxMessage, &around.large)
	if around.Account != nil && !spec.Proves() { // the configuration's own goes first
		s.dialer.account = around.Account(spec.Name)
	}
	s.open = func() (transport.Link, error) {
		return s.dialer.dial(s.Reports(), s.place.Load(), s.OverSSE(), false)
	}
	s.shared.Store(spec.Shared)
	s.Clients = clients(s)
	return s
}

// reports are what a link tells its server.
type reports struct{ s *Server }

// Reports returns what a link reports to.
func (s *Server) Reports() transport.Reports { return reports{s} }

// ToolsChanged takes note that the server has announced a change. It is called
// by who reads the connection, before anything that the server says later is
// handed on.
func (r reports) ToolsChanged() {
	r.s.listing.announced.Add(1)
	signal(r.s.listing.relist)
}

func (r reports) PrimitivesChanged() { signal(r.s.reoffer) }

func (r reports) Notification(method string, params json.RawMessage) bool {
	return r.s.Clients.Heard(method, params)
}

func (r reports) Missed() {
	c := r.s.availability.live.Load()
	if c == nil || c.greeting.saysChanges {
		signal(r.s.listing.relist)
	}
	if c != nil && c.greeting.saysOffers {
		signal(r.s.reoffer)
	}
}

func (r reports) Doubt() { signal(r.s.suspicion) }

func (r reports) Log(text string) { r.s.log.Remark(text) }

func (r reports) Odd(what string) { r.s.odd(what) }

// apply has the server run by the spec from now on, as far as that needs no
// restart: clients that come share the connection, or not, and those that are
// there begin anew when that changes.
func (s *Server) apply(spec Spec) {
	s.usage.pace.Store(spec.pace())
	signal(s.usage.paced)
	signal(s.availability.nudge)
	if s.shared.Swap(spec.Shared) != spec.Shared {
		s.Clients.End(Sessions)
	}
}

// Wake has the server started if it rests. It returns at once.
func (s *Server) Wake() {
	if s.availability.live.Load() != nil {
		return
	}
	s.availability.run()
}

// restart ends the connection, or the try, and makes a new one at once. Clients
// that share the connection go on with the new one.
func (s *Server) restart() {
	s.listing.forget()
	s.failing.forgive()
	s.availability.restart()
}

// inUse reports whether somebody needs the server now: a request is in flight,
// or a client has something open.
func (s *Server) inUse() bool { return s.usage.uses.Load() > 0 || s.Clients.InUse() }

// Shared reports whether a client that comes now shares the connection.
func (s *Server) Shared() bool { return s.shared.Load() }

// Ready waits for the connection, and has one made if there is none.
func (s *Server) Ready(ctx context.Context) (*Connection, error) {
	return s.availability.ready(ctx, s.Spec.ConnectTime())
}

// Place waits for a place among the processes that start, where a link of a
// client's own starts one; else it is nil. A client does not wait as long as an
// installation may take: that is left to our own connection. Its errors are
// problems, or ctx.Err(). Leave the place when the session has begun.
func (s *Server) Place(ctx context.Context) (*process.StartSlot, error) {
	queue := s.queue()
	if queue == nil {
		return nil, nil
	}
	if !queue.IsInstalled(s.runner) {
		if _, err := s.Ready(ctx); err != nil {
			return nil, s.Explain(ctx, &session.Request{Method: mcp.Initialize}, err)
		}
	}
	p := queue.Join(s.runner, true)
	select {
	case <-p.Turn():
		return p, nil
	case <-ctx.Done():
		p.Leave(false)
		if !session.TimedOut(ctx) {
			return nil, ctx.Err()
		}
		return nil, s.Unreachable(problem.Slowf("too many processes are starting, its turn did not come"), ctx.Err())
	}
}

// Open makes a link of one client's own, which reports to up.
func (s *Server) Open(up transport.Reports, place *process.StartSlot) (transport.Link, error) {
	return s.dialer.dial(up, place, s.OverSSE(), true)
}
