package upstream

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/transport"
	"mcpproxy/internal/upstream/process"
	"mcpproxy/internal/upstream/sandbox"
)

const defaultMaxMessage = 64 << 20

// Set contains the enabled servers, each supervised separately.
type Set struct {
	sharedState sharedState
	clients     func(*Server) ServerClients
	wg          sync.WaitGroup

	servers atomic.Pointer[map[string]*Server] // replaced, never modified
	applied chan struct{}                      // closed by the first ApplySpecs
	known   sync.Once                          // closes applied

	mu     sync.Mutex // serializes ApplySpecs and Close
	closed bool
}

// NewSet returns an empty Set. clients returns the client sessions of a server.
func NewSet(opt Options, clients func(*Server) ServerClients) *Set {
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	if opt.MaxMessage <= 0 {
		opt.MaxMessage = defaultMaxMessage
	}
	if opt.Sandboxes == nil {
		opt.Sandboxes = sandbox.NewSystem("")
	}
	if opt.ClientVersion == "" {
		opt.ClientVersion = "dev"
	}
	s := &Set{clients: clients, applied: make(chan struct{}),
		sharedState: sharedState{Options: opt, starts: process.NewStartQueue(), stopNow: make(chan struct{})}}
	s.sharedState.launch = process.NewLauncher(opt.ProcessDir, func(ended int) {
		opt.Logger.Warn("processes of servers that an earlier run had left behind were ended", "processes", ended)
	})
	s.sharedState.ids.Store(randomFirstID())
	s.sharedState.apps.Store(opt.DeclareApps)
	s.servers.Store(&map[string]*Server{})
	return s
}

// randomFirstID returns a random first request ID, so that a server cannot prepare the answer to a future request. It
// stays well below 2^53, the limit up to which every JSON parser is exact.
func randomFirstID() uint64 {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return binary.LittleEndian.Uint64(b[:]) >> 12
}

// ApplySpecs sets the servers to specs: new ones start, missing ones stop, changed ones
// restart. It returns at once.
func (s *Set) ApplySpecs(specs []Spec) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	old := *s.servers.Load()
	next := make(map[string]*Server, len(specs))
	for _, spec := range specs {
		if next[spec.Name] != nil {
			s.sharedState.Logger.Warn("two servers have the same name: the second one is ignored", "server", spec.Name)
			continue
		}
		was := old[spec.Name]
		if was != nil && was.Spec.LaunchEquals(spec) && (was.reviewed || !spec.Review) {
			was.reviewed = spec.Review
			was.applySpecWithoutRestart(spec)
			next[spec.Name] = was
			continue
		}
		next[spec.Name] = s.startServer(spec, was)
	}
	for name, was := range old {
		if next[name] != was {
			was.cancel()
		}
	}
	s.servers.Store(&next)
	s.known.Do(func() { close(s.applied) })
}

// startServer starts the server of spec. If a previous server of that name exists, it starts after before has stopped.
func (s *Set) startServer(spec Spec, before *Server) *Server {
	spec.Args, spec.Secrets = slices.Clone(spec.Args), slices.Clone(spec.Secrets)
	spec.Env, spec.Headers = maps.Clone(spec.Env), maps.Clone(spec.Headers)
	sv := newServer(spec, &s.sharedState, s.clients)
	sv.reviewed = spec.Review
	ctx, cancel := context.WithCancel(context.Background())
	sv.cancel = cancel
	var gone <-chan struct{}
	if before != nil {
		gone = before.availability.done
	}
	s.wg.Go(func() {
		defer cancel()
		sv.supervise(ctx, gone)
	})
	return sv
}

// find returns the server of that name, or nil.
func (s *Set) find(name string) *Server { return (*s.servers.Load())[name] }

// firstApplyTimeout is how long a request waits for the first ApplySpecs, which must read the approvals from disk.
const firstApplyTimeout = 10 * time.Second

// ServerForRequest returns the server of that name for a request. The request may arrive before the first ApplySpecs
// and then waits for it. The error is a problem.
func (s *Set) ServerForRequest(ctx context.Context, name string) (*Server, error) {
	if sv := s.find(name); sv != nil {
		return sv, nil
	}
	limit := time.NewTimer(firstApplyTimeout)
	defer limit.Stop()
	select {
	case <-s.applied:
	case <-ctx.Done():
	case <-limit.C:
		return nil, approvalsUnreadError(name)
	}
	if sv := s.find(name); sv != nil {
		return sv, nil
	}
	return nil, NotStartedError(name)
}

// State returns the state of a server's connection.
func (s *Set) State(server string) (State, bool) {
	sv := s.find(server)
	if sv == nil {
		return State{}, false
	}
	return sv.availability.currentState(), true
}

// Deviations returns a server's deviations from the protocol.
func (s *Set) Deviations(server string) []string {
	if sv := s.find(server); sv != nil {
		return sv.Deviations()
	}
	return nil
}

// SessionNeeds returns the known needs of a server for which clients get a session of their own.
func (s *Set) SessionNeeds(server string) []KnownNeed {
	if sv := s.find(server); sv != nil && sv.Spec.Auto {
		return sv.needs.needs()
	}
	return nil
}

// StartProgress returns the progress of a start. It changes all the time, so it is not part of State.
func (s *Set) StartProgress(server string) StartProgress {
	sv := s.find(server)
	if sv == nil {
		return StartProgress{}
	}
	state := sv.availability.currentState()
	return sv.startProgress(&state)
}

// LogTail returns the last lines of a server's log, limited to lines. It also works for removed servers.
func (s *Set) LogTail(server string, lines int) ([]process.LogLine, error) {
	tail, err := s.NewLogReader(server).ReadLast(lines)
	if sv := s.find(server); err == nil && sv != nil && lines > 0 {
		if begun := sv.log.PartialLine(); begun != "" {
			tail = append(tail, process.LogLine{Stream: process.Stderr, Text: begun})
			tail = tail[max(0, len(tail)-lines):]
		}
	}
	return tail, err
}

// NewLogReader returns a reader of whole lines of a server's log.
func (s *Set) NewLogReader(server string) *process.LogReader {
	return process.NewLogReader(s.sharedState.LogDir, server)
}

// AddDefinitions adds tools that a server listed to a client. It notifies the observer of new ones and reports whether
// there are any.
func (s *Set) AddDefinitions(server string, definitions []json.RawMessage) bool {
	sv := s.find(server)
	if sv == nil {
		return false
	}
	c := sv.availability.live.Load()
	if c == nil {
		return false
	}
	news := false
	for _, raw := range definitions {
		d, err := tool.ParseDefinition(server, bytes.Clone(raw))
		if err == nil && !c.listsToolToProxy(d.ID.Tool) {
			news = sv.listing.addClientTool(d) || news
		}
	}
	if news {
		trySignal(sv.listing.clientToolsAdded)
	}
	return news
}

// RefreshTools lists a server's tools again, unless they were listed after since, and waits briefly for the result. It
// is for callers that saw a list that differs from the published one.
func (s *Set) RefreshTools(ctx context.Context, server string, since time.Time) {
	sv := s.find(server)
	if sv == nil {
		return
	}
	r := &session.Request{Method: mcp.ListTools}
	sv.BeginUse(r)
	defer sv.EndUse(r)
	sv.RequestStart()
	sv.listing.refreshList(ctx, since)
}

// ListPrimitives reads all pages of a list of prompts, resources or resource templates on the shared connection. list
// is its name in the result. The elements are the server's unchanged bytes. The errors are problems, or ctx.Err(). If
// the server answered but the list is incomplete, ListPrimitives returns the elements so far and an error for which
// ServerAnswered is true.
func (s *Set) ListPrimitives(ctx context.Context, server, method, list string) ([]json.RawMessage, error) {
	switch method {
	case mcp.ListPrompts, mcp.ListResources, mcp.ListTemplates:
	default:
		return nil, UnpermittedCallError()
	}
	sv, err := s.ServerForRequest(ctx, server)
	if err != nil {
		return nil, err
	}
	r := &session.Request{Method: method}
	sv.BeginUse(r)
	defer sv.EndUse(r)
	c, err := sv.WaitReady(ctx)
	if err != nil {
		return nil, sv.ToProblem(ctx, r, err)
	}
	all := pageReader{list: list, elements: "elements", bytes: maxPrimitiveBytes, most: maxPrimitives, unthrottled: maxPrimitiveBytes, addDeviation: sv.addDeviation}
	items, err := all.readAllPages(ctx, nil, func(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
		return sv.SendOwnRequest(ctx, c, method, params)
	})
	if err != nil {
		err = sv.ToProblem(ctx, r, err)
		if !ServerAnswered(err) {
			items = nil
		}
	}
	return items, err
}

// ServerAnswered reports whether a list failed although its server answered: with an error, with an invalid result, or
// with too much data.
func ServerAnswered(err error) bool {
	_, refused := errors.AsType[*transport.ServerRPCError](err)
	_, answered := errors.AsType[*incompleteListError](err)
	return refused || answered
}

// Restart ends the server's connection and starts a new one at once. It is for users, because it also ends calls in
// flight.
func (s *Set) Restart(server string) error {
	sv := s.find(server)
	if sv == nil {
		return NotStartedError(server)
	}
	sv.restartNow()
	sv.Clients.EndSessions(EndForRestart)
	return nil
}

// RestartWhenDrained restarts a server for an agent, which must not disturb other clients. It ends no call in flight
// and no client's own session. It is rejected during a start and for a while after a restart. New calls wait for the
// new connection. begin is called directly before the connection ends. If begin fails, nothing happens.
func (s *Set) RestartWhenDrained(ctx context.Context, server string, begin func() error) error {
	sv := s.find(server)
	if sv == nil {
		return NotStartedError(server)
	}
	return sv.restartWhenDrained(ctx, begin)
}

// DeclareApps makes MCPProxy declare MCP Apps to servers, because a client supports them. Some servers list more tools
// then. A modern server lists its tools again. A legacy one is restarted as soon as nothing is in flight, unless it
// starts later anyway. It returns at once.
func (s *Set) DeclareApps() {
	if s.sharedState.apps.Load() || s.sharedState.apps.Swap(true) {
		return
	}
	for _, sv := range *s.servers.Load() {
		trySignal(sv.declarationChanged)
	}
}

// KillAll kills the processes of all servers at once, including package managers. Call Close after it.
func (s *Set) KillAll() { s.sharedState.launch.KillAll() }

// InstallingServers returns the servers whose package managers are installing, by name.
func (s *Set) InstallingServers() (names []string) {
	for name := range *s.servers.Load() {
		if s.StartProgress(name).Step == Installing {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Close stops every server and waits for the end of all processes. If ctx ends first, it kills the servers, but lets
// package managers roll back, because other programs share their caches.
func (s *Set) Close(ctx context.Context) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	for _, sv := range *s.servers.Load() {
		sv.cancel()
	}
	s.mu.Unlock()
	done := make(chan struct{})
	go func() {
		s.wg.Wait()
		close(done)
	}()
	var err error
	select {
	case <-done:
	case <-ctx.Done():
		if n := s.sharedState.starts.FinishingInstallCount(); n > 0 {
			s.sharedState.Logger.Info("package managers remove incomplete installations", "processes", n)
		} else {
			err = ctx.Err()
		}
		close(s.sharedState.stopNow)
		<-done
	}
	s.sharedState.launch.Close()
	s.sharedState.large.Close()
	return err
}
