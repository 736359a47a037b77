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

// ServerClients are the client sessions of one server.
type ServerClients interface {
	// OnConnected is called for each connection before it can be used.
	OnConnected(c *Connection)
	// OnNotification receives the server's notifications that belong to no request. It reports whether they may concern
	// a client.
	OnNotification(method string, params json.RawMessage) bool
	// InUse reports whether a client has something open that needs the server.
	InUse() bool
	// OnNeedLearned is called when a client that shared the session may now need its own.
	OnNeedLearned()
	// EndSessions ends sessions.
	EndSessions(what SessionsToEnd)
}

// SessionsToEnd selects the sessions to end. Each value includes more sessions than the previous one.
type SessionsToEnd uint8

// The scopes. EndAll waits until everything has ended; the others return at once.
const (
	EndIdle       SessionsToEnd = iota // pooled sessions
	EndForRestart                      // sessions that do not survive a restart by a user
	EndSessions                        // all sessions
	EndAll                             // everything; no new sessions
)

// Server keeps one enabled server connected. Its parts have their own state. Only the goroutine of supervise changes
// the connection.
type Server struct {
	*serverBase
	Clients ServerClients

	usageTracker
	handshaker
	dialer  dialer
	listing toolListTracker
	failing callFailures

	open   func() (transport.Link, error) // opens a link that reports to this server
	shared atomic.Bool                    // new clients share the connection

	primitivesChanged  chan struct{} // cap 1: the prompts or resources have changed
	connectionSuspect  chan struct{} // cap 1: check whether the connection works
	failingChanged     chan struct{} // cap 1: the server has started or stopped failing every call
	declarationChanged chan struct{} // cap 1: MCPProxy now declares other capabilities
	wasIdle            bool          // since the last connection; used by supervise only

	reviewed bool               // Spec.Review of the last ApplySpecs; guarded by Set.mu
	cancel   context.CancelFunc // ends supervise
}

// newServer returns a server that is not connected yet; supervise connects it.
func newServer(spec Spec, around *sharedState, clients func(*Server) ServerClients) *Server {
	b := newServerBase(spec, around)
	s := &Server{serverBase: b, handshaker: handshaker{serverBase: b}, listing: newToolListTracker(),
		primitivesChanged: make(chan struct{}, 1), connectionSuspect: make(chan struct{}, 1), failingChanged: make(chan struct{}, 1), declarationChanged: make(chan struct{}, 1)}
	s.usageTracker.started, s.usageTracker.idlePolicyChanged = time.Now(), make(chan struct{}, 1)
	s.usageTracker.idlePolicy.Store(spec.idlePolicy())
	s.dialer.serverBase, s.dialer.budget = b, transport.NewMemoryBudget(around.MaxMessage, &around.large)
	if around.AccountFor != nil && !spec.HasCredentials() { // configured credentials take precedence
		s.dialer.account = around.AccountFor(spec.Name)
	}
	s.open = func() (transport.Link, error) {
		return s.dialer.dialLink(s.ReportReceiver(), s.startSlot.Load(), s.UsesSSE(), false)
	}
	s.shared.Store(spec.Shared)
	s.Clients = clients(s)
	return s
}

// linkReportReceiver receives the reports of a link.
type linkReportReceiver struct{ s *Server }

// ReportReceiver returns the receiver for a link's reports.
func (s *Server) ReportReceiver() transport.Reporter { return linkReportReceiver{s} }

// ToolsChanged records an announced change. The reader of the connection calls it before it forwards later messages.
func (r linkReportReceiver) ToolsChanged() {
	r.s.listing.announced.Add(1)
	trySignal(r.s.listing.relist)
}

func (r linkReportReceiver) PrimitivesChanged() { trySignal(r.s.primitivesChanged) }

func (r linkReportReceiver) Notification(method string, params json.RawMessage) bool {
	return r.s.Clients.OnNotification(method, params)
}

// QuestionAsked records that clients that can answer questions need their own session.
func (r linkReportReceiver) QuestionAsked(method string) {
	r.s.learnNeed(SessionNeed(mcp.QuestionCapability(method)), true)
}

// QuestionRefused is called after MCPProxy has refused a question on the shared connection. From now on it declares no
// capability for such questions, so that the server does what it does for a client that it cannot ask.
func (s *Server) QuestionRefused() { trySignal(s.declarationChanged) }

func (r linkReportReceiver) QuestionRefused() { r.s.QuestionRefused() }

func (r linkReportReceiver) NotificationsMissed() {
	c := r.s.availability.live.Load()
	if c == nil || c.handshakeResult.announcesTools {
		trySignal(r.s.listing.relist)
	}
	if c != nil && c.handshakeResult.announcesPrimitives {
		trySignal(r.s.primitivesChanged)
	}
}

func (r linkReportReceiver) ConnectionDoubtful() { trySignal(r.s.connectionSuspect) }

func (r linkReportReceiver) Log(text string) { r.s.log.WriteRemark(text) }

func (r linkReportReceiver) ProtocolViolation(what string) { r.s.addDeviation(what) }

// applySpecWithoutRestart sets the parts of the spec that need no restart. When Shared changes, clients must begin new
// sessions.
func (s *Server) applySpecWithoutRestart(spec Spec) {
	s.usageTracker.idlePolicy.Store(spec.idlePolicy())
	trySignal(s.usageTracker.idlePolicyChanged)
	trySignal(s.availability.needed)
	if s.shared.Swap(spec.Shared) != spec.Shared {
		s.Clients.EndSessions(EndSessions)
	}
}

// RequestStart requests the start of an idle server. It returns at once.
func (s *Server) RequestStart() {
	if s.availability.live.Load() != nil {
		return
	}
	s.availability.requestStart()
}

// restartNow ends the connection or the attempt and starts a new one at once. Clients that share the connection
// continue on the new one.
func (s *Server) restartNow() {
	s.listing.clearClientTools()
	s.failing.clearFailures()
	s.availability.requestRestart()
}

// isInUse reports whether a request is in flight, or a client has something open that needs the server.
func (s *Server) isInUse() bool { return s.usageTracker.uses.Load() > 0 || s.Clients.InUse() }

// IsShared reports whether a new client shares the connection.
func (s *Server) IsShared() bool { return s.shared.Load() }

// WaitReady waits for the connection. If there is none, it requests one.
func (s *Server) WaitReady(ctx context.Context) (*Connection, error) {
	return s.availability.waitReady(ctx, s.Spec.ConnectTimeLimit())
}

// WaitStartSlot waits for a slot in the start queue if a client's own link starts a process. Otherwise it returns nil.
// It does not wait long enough for an installation, which only MCPProxy's own connection does. Its errors are problems,
// or ctx.Err(). Release the slot when the session has begun.
func (s *Server) WaitStartSlot(ctx context.Context) (*process.StartSlot, error) {
	queue := s.startQueue()
	if queue == nil {
		return nil, nil
	}
	if !queue.IsInstalled(s.runner) {
		if _, err := s.WaitReady(ctx); err != nil {
			return nil, s.ToProblem(ctx, &session.Request{Method: mcp.Initialize}, err)
		}
	}
	p := queue.Join(s.runner, true)
	select {
	case <-p.TurnGranted():
		return p, nil
	case <-ctx.Done():
		p.Release(false)
		if !session.IsTimedOut(ctx) {
			return nil, ctx.Err()
		}
		return nil, s.UnreachableError(problem.TrustedTextTimeoutErrorf("too many processes are starting, and it did not start in time"), ctx.Err())
	}
}

// OpenClientLink opens a client's own link, which reports to up.
func (s *Server) OpenClientLink(up transport.Reporter, place *process.StartSlot) (transport.Link, error) {
	return s.dialer.dialLink(up, place, s.UsesSSE(), true)
}
