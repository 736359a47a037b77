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
)

const defaultMaxMessage = 64 << 20

// Set is the servers that are wanted, each supervised by itself.
type Set struct {
	around  shared
	clients func(*Server) Clients
	wg      sync.WaitGroup

	servers atomic.Pointer[map[string]*Server] // replaced, never changed
	applied chan struct{}                      // closed by the first Apply
	known   sync.Once                          // closes applied

	mu     sync.Mutex // orders Apply and Close
	closed bool
}

// NewSet makes an empty Set. clients makes those of a server.
func NewSet(opt Options, clients func(*Server) Clients) *Set {
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	if opt.MaxMessage <= 0 {
		opt.MaxMessage = defaultMaxMessage
	}
	if opt.ClientVersion == "" {
		opt.ClientVersion = "dev"
	}
	s := &Set{clients: clients, applied: make(chan struct{}),
		around: shared{Options: opt, starts: process.NewStartQueue(), hard: make(chan struct{})}}
	s.around.launch = process.NewLauncher(opt.ProcessDir, func(ended int) {
		opt.Logger.Warn("processes of servers that an earlier run had left behind were ended", "processes", ended)
	})
	s.around.ids.Store(firstID())
	s.servers.Store(&map[string]*Server{})
	return s
}

// firstID is where the ids of requests begin: at random, so that what passes
// through a server cannot hold an answer to a request to come. It leaves room
// below 2^53, up to which every JSON parser is exact.
func firstID() uint64 {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return binary.LittleEndian.Uint64(b[:]) >> 12
}

// Apply makes the wanted servers the ones of specs: new ones start, missing
// ones stop, changed ones restart, equal ones are untouched. It returns at once.
func (s *Set) Apply(specs []Spec) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	old := *s.servers.Load()
	next := make(map[string]*Server, len(specs))
	for _, spec := range specs {
		if next[spec.Name] != nil {
			s.around.Logger.Warn("two servers with one name: the first one stays", "server", spec.Name)
			continue
		}
		was := old[spec.Name]
		if was != nil && was.Spec.Equal(spec) && (was.reviewed || !spec.Review) {
			was.reviewed = spec.Review
			was.apply(spec)
			next[spec.Name] = was
			continue
		}
		next[spec.Name] = s.start(spec, was)
	}
	for name, was := range old {
		if next[name] != was {
			was.cancel()
		}
	}
	s.servers.Store(&next)
	s.known.Do(func() { close(s.applied) })
}

// start starts the server of spec as soon as before, the server of that name
// until now, has stopped.
func (s *Set) start(spec Spec, before *Server) *Server {
	spec.Args, spec.Secrets = slices.Clone(spec.Args), slices.Clone(spec.Secrets)
	spec.Env, spec.Headers = maps.Clone(spec.Env), maps.Clone(spec.Headers)
	sv := newServer(spec, &s.around, s.clients)
	sv.reviewed = spec.Review
	ctx, cancel := context.WithCancel(context.Background())
	sv.cancel = cancel
	var gone <-chan struct{}
	if before != nil {
		gone = before.availability.done
	}
	s.wg.Go(func() {
		defer cancel()
		sv.run(ctx, gone)
	})
	return sv
}

// find returns the wanted server of that name, or nil.
func (s *Set) find(name string) *Server { return (*s.servers.Load())[name] }

// firstApply is how long a request waits for the first Apply: what may be
// started is read from the disk first.
const firstApply = 10 * time.Second

// Server returns the wanted server of that name, for a request, which may come
// before the first Apply. Its error is a problem.
func (s *Set) Server(ctx context.Context, name string) (*Server, error) {
	if sv := s.find(name); sv != nil {
		return sv, nil
	}
	limit := time.NewTimer(firstApply)
	defer limit.Stop()
	select {
	case <-s.applied:
	case <-ctx.Done():
	case <-limit.C:
		return nil, notKnownYet(name)
	}
	if sv := s.find(name); sv != nil {
		return sv, nil
	}
	return nil, NotStarted(name)
}

// State is a snapshot of one server's connection.
func (s *Set) State(server string) (State, bool) {
	sv := s.find(server)
	if sv == nil {
		return State{}, false
	}
	return sv.availability.snapshot(), true
}

// Oddities returns what a server does otherwise than the protocol asks, for people.
func (s *Set) Oddities(server string) []string {
	if sv := s.find(server); sv != nil {
		return sv.Oddities()
	}
	return nil
}

// Progress tells what a server is at. It changes all the time, so that it is no
// part of the State.
func (s *Set) Progress(server string) Progress {
	sv := s.find(server)
	if sv == nil {
		return Progress{}
	}
	state := sv.availability.snapshot()
	return sv.progress(&state)
}

// LogTail returns the last lines of a server's log, at most as many as asked for.
// It works for servers that are not wanted any more, too.
func (s *Set) LogTail(server string, lines int) ([]process.LogLine, error) {
	tail, err := s.ReadLog(server).Last(lines)
	if sv := s.find(server); err == nil && sv != nil && lines > 0 {
		if begun := sv.log.Unfinished(); begun != "" {
			tail = append(tail, process.LogLine{Stream: process.Stderr, Text: begun})
			tail = tail[max(0, len(tail)-lines):]
		}
	}
	return tail, err
}

// ReadLog returns a reader of a server's log, whole lines alone.
func (s *Set) ReadLog(server string) *process.LogReader {
	return process.ReadLog(s.around.LogDir, server)
}

// AddDefinitions takes tools that a server has listed to a client. It reports whether
// there are some among them that were not known, of which the observer is told.
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
		if err == nil && !c.lists(d.ID.Tool) {
			news = sv.listing.learn(d) || news
		}
	}
	if news {
		signal(sv.listing.taught)
	}
	return news
}

// RefreshTools has the tools of a server listed again, unless they were after
// since, and waits for it a moment. It is for somebody who has seen another
// list than the one that was told to the observer.
func (s *Set) RefreshTools(ctx context.Context, server string, since time.Time) {
	sv := s.find(server)
	if sv == nil {
		return
	}
	r := &session.Request{Method: mcp.ListTools}
	sv.Enter(r)
	defer sv.Leave(r)
	sv.Wake()
	sv.listing.refresh(ctx, since)
}

// ListPrimitives reads all pages of a list of what a server offers beside tools, on
// the connection that all share: prompts, resources or resource templates, by
// the name that the list has in the result. The bytes are the server's. Its
// errors are problems, or ctx.Err(). Where the server has answered, but not with
// a whole list that can be kept, the error is one of which Answered is true, and
// what there was of the list comes with it.
func (s *Set) ListPrimitives(ctx context.Context, server, method, list string) ([]json.RawMessage, error) {
	switch method {
	case mcp.ListPrompts, mcp.ListResources, mcp.ListTemplates:
	default:
		return nil, Unjudged()
	}
	sv, err := s.Server(ctx, server)
	if err != nil {
		return nil, err
	}
	r := &session.Request{Method: method}
	sv.Enter(r)
	defer sv.Leave(r)
	c, err := sv.Ready(ctx)
	if err != nil {
		return nil, sv.Explain(ctx, r, err)
	}
	all := pages{list: list, elements: "elements", bytes: maxOfferBytes, most: maxOffers, free: maxOfferBytes, odd: sv.odd}
	items, err := all.read(ctx, nil, func(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
		return sv.Ask(ctx, c, method, params)
	})
	if err != nil {
		err = sv.Explain(ctx, r, err)
		if !Answered(err) {
			items = nil
		}
	}
	return items, err
}

// Answered reports whether a list could not be had although its server has
// answered: with an error, with something else, or with too much.
func Answered(err error) bool {
	_, refused := errors.AsType[*transport.AnswerError](err)
	_, answered := errors.AsType[*answeredError](err)
	return refused || answered
}

// Restart ends the server's connection, if any, and makes a new one at once.
// What is in flight ends with it: it is for a person.
func (s *Set) Restart(server string) error {
	sv := s.find(server)
	if sv == nil {
		return NotStarted(server)
	}
	sv.restart()
	sv.Clients.End(Restart)
	return nil
}

// RestartQuietly does the same for an agent, who must not disturb others: it
// ends no call in flight and no client's own session, and is refused while the
// server is being started and for a while after a restart. Calls that come
// meanwhile wait for the new connection. begin is called right before the
// connection is ended: when it fails nothing is done.
func (s *Set) RestartQuietly(ctx context.Context, server string, begin func() error) error {
	sv := s.find(server)
	if sv == nil {
		return NotStarted(server)
	}
	return sv.restartQuietly(ctx, begin)
}

// Kill ends the processes of all servers at once, also of those that install something.
// Close has to follow.
func (s *Set) Kill() { s.around.launch.Kill() }

// Installing are the servers whose package managers install something, by name.
func (s *Set) Installing() (names []string) {
	for name := range *s.servers.Load() {
		if s.Progress(name).Step == Installing {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Close stops every server and waits until all are gone. When ctx ends first
// it ends them without grace; package managers that install something take that
// back first, since others use what they would leave behind.
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
		if n := s.around.starts.Ending(); n > 0 {
			s.around.Logger.Info("package managers take back what they have not installed wholly", "processes", n)
		} else {
			err = ctx.Err()
		}
		close(s.around.hard)
		<-done
	}
	s.around.launch.Close()
	s.around.large.Close()
	return err
}
