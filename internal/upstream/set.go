package upstream

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"mcpproxy/internal/link"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/process"
	"mcpproxy/internal/startup"
	"mcpproxy/internal/wire"
)

// Options are the surroundings of a Set.
type Options struct {
	Logger        *slog.Logger
	LogDir        string // per-server logs go here; "" keeps none
	Observer      Observer
	ClientVersion string // said to servers in clientInfo
	// Account gives what proves to the server of that name who asks, or nil; for
	// servers over HTTP. Nil when no server has any.
	Account    func(server string) wire.Account
	MaxMessage int // the largest message a server may send, in bytes; 0 = 64 MiB
}

const defaultMaxMessage = 64 << 20

// Set is the servers that are wanted, each supervised by itself.
type Set struct {
	opt    Options
	launch *process.Launcher
	large  wire.Buffers   // of all rooms
	starts *startup.Queue // processes that start
	ids    atomic.Uint64  // of requests: unique over all servers and their connections, not to be guessed
	hard   chan struct{}  // closed when stopping must not take its time any more
	wg     sync.WaitGroup

	servers atomic.Pointer[map[string]*server] // replaced, never changed
	applied chan struct{}                      // closed by the first Apply

	known sync.Once // closes applied

	mu     sync.Mutex // orders Apply and Close
	closed bool
}

// NewSet makes an empty Set.
func NewSet(opt Options) *Set {
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	if opt.MaxMessage <= 0 {
		opt.MaxMessage = defaultMaxMessage
	}
	if opt.ClientVersion == "" {
		opt.ClientVersion = "dev"
	}
	s := &Set{opt: opt, launch: process.NewLauncher(), hard: make(chan struct{}), applied: make(chan struct{}), starts: startup.NewQueue()}
	s.ids.Store(firstID())
	s.servers.Store(&map[string]*server{})
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
	next := make(map[string]*server, len(specs))
	for _, spec := range specs {
		was := old[spec.Name]
		if was != nil && was.spec.Equal(spec) && (was.reviewed || !spec.Review) {
			was.reviewed = spec.Review
			was.setPace(spec)
			was.setShared(spec.Shared)
			next[spec.Name] = was
			continue
		}
		if next[spec.Name] != nil {
			s.opt.Logger.Warn("two servers with one name: the first one stays", "server", spec.Name)
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

// firstApply is how long a request waits for the first Apply: what may be
// started is read from the disk first.
const firstApply = 10 * time.Second

// await is find for a request, which may come before the first Apply.
func (s *Set) await(ctx context.Context, name string) *server {
	if sv := s.find(name); sv != nil {
		return sv
	}
	limit := time.NewTimer(firstApply)
	defer limit.Stop()
	select {
	case <-s.applied:
	case <-ctx.Done():
	case <-limit.C:
	}
	return s.find(name)
}

// start starts the server of spec as soon as before, the server of that name
// until now, has stopped.
func (s *Set) start(spec Spec, before *server) *server {
	spec.Args, spec.Secrets = slices.Clone(spec.Args), slices.Clone(spec.Secrets)
	spec.Env, spec.Headers = maps.Clone(spec.Env), maps.Clone(spec.Headers)
	sv := newServer(spec, &s.opt, &s.ids, s.hard)
	sv.reviewed, sv.starts = spec.Review, s.starts
	sv.open = func() (link.Link, error) { return s.openLink(sv, sv, sv.place.Load(), false) }
	sv.room = wire.NewBudget(s.opt.MaxMessage, &s.large)
	ctx, cancel := context.WithCancel(context.Background())
	sv.cancel = cancel
	var gone <-chan struct{}
	if before != nil {
		gone = before.done
	}
	s.wg.Go(func() {
		defer cancel()
		sv.run(ctx, gone)
	})
	return sv
}

// openLink makes a link to sv's server, of its transport. own is for one client
// alone: then the clients share what is dialled over HTTP.
func (s *Set) openLink(sv *server, up link.Reports, place *startup.Place, own bool) (link.Link, error) {
	o := link.Options{IDs: &s.ids, Reports: up, Budget: sv.room, Version: s.opt.ClientVersion, Own: own}
	spec := &sv.spec
	if spec.Transport == Stdio {
		proc, err := process.Start(process.Command{Name: spec.Command, Args: spec.Args, Env: spec.Env, Dir: spec.Dir, Installs: sv.runner.Installs}, s.launch)
		if err != nil {
			return nil, err
		}
		return link.NewStdio(proc, startup.New(proc, sv.runner, sv.connectTime(), place), sv.log, o), nil
	}
	a := link.Address{URL: spec.URL, Headers: spec.Headers, Account: s.account(spec), Dial: spec.dial}
	if own {
		a.Dial = func(u *url.URL) (wire.Client, error) { return sv.talks.dialled(u, spec) }
	}
	var (
		l   link.Link
		err error
	)
	switch {
	case sv.overSSE():
		l, err = link.NewSSE(a, o)
	case spec.Transport == HTTP:
		l, err = link.NewHTTP(a, o)
	default:
		err = problem.Ownf("the transport %s is not known", spec.Transport)
	}
	if err != nil {
		return nil, err // no link, not even one that is nil
	}
	return l, nil
}

// find gives the wanted server of that name, or nil.
func (s *Set) find(name string) *server { return (*s.servers.Load())[name] }

// State is a snapshot of one server's connection.
func (s *Set) State(server string) (State, bool) {
	sv := s.find(server)
	if sv == nil {
		return State{}, false
	}
	return sv.snapshot(), true
}

// LogTail gives the last lines of a server's log, at most as many as asked for.
// It works for servers that are not wanted any more, too.
func (s *Set) LogTail(server string, lines int) ([]string, error) {
	tail, err := process.TailLog(s.opt.LogDir, server, lines)
	if sv := s.find(server); err == nil && sv != nil && lines > 0 {
		if begun := sv.log.Unfinished(); begun != "" {
			tail = append(tail, begun)
			tail = tail[max(0, len(tail)-lines):]
		}
	}
	return tail, err
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
		if n := s.starts.Ending(); n > 0 {
			s.opt.Logger.Info("package managers take back what they have not installed wholly", "processes", n)
		} else {
			err = ctx.Err()
		}
		close(s.hard)
		<-done
	}
	s.launch.Close()
	s.large.Close()
	return err
}

func notStarted(server string) *problem.Problem {
	return problem.Newf(problem.ServerUnavailable, "Server '%s' is not started", server).
		WithHint("Enable the server, or add it to the configuration.").
		With("server", server).With("state", string(Stopped))
}
