package catalog

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"mcpproxy/internal/catalog/scan"
	"mcpproxy/internal/catalog/search"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/upstream"
)

// Store remembers the last known tools of servers across restarts.
type Store interface {
	SaveTools(ctx context.Context, server string, raws []json.RawMessage) error
	LoadTools(ctx context.Context) (map[string][]json.RawMessage, error)
	ForgetTools(ctx context.Context, server string) error
}

// Catalog follows configuration and upstreams and publishes snapshots. It is an
// upstream.Observer and a config.Component.
type Catalog struct {
	Options
	current atomic.Pointer[Snapshot]
	names   *scan.CrossRefs // of all tools that servers have listed
	doubts  doubts

	// wake tells Run that something changed; unsaved that a list was received.
	wake, unsaved chan struct{}

	// receiving has a place for each list that is being taken over.
	receiving chan struct{}

	// building is held while a snapshot is made, so that snapshots are
	// published in the order of what they are made from.
	building sync.Mutex

	mu      sync.Mutex // guards the fields below
	servers []config.Server
	infer   policy.InferMode
	judges  policy.JudgeMode
	states  map[string]upstream.State
	lists   map[string]*list
	offers  map[string]*Offers
}

// doubts has what was accepted held against the names of tools that have come
// since: by one at a time, for all that have come meanwhile.
type doubts struct {
	mu         sync.Mutex // guards the fields below, and is not held while it is looked
	came, done uint64     // how often something came; how much of that was looked at
	running    bool
}

// Options are what a Catalog is made of.
type Options struct {
	Servers []config.Server  // that are configured at the start
	Infer   policy.InferMode // as configured at the start
	Judge   policy.JudgeMode
	Keeper  Store
	Book    *approval.Book
	// Observe is told what became of definitions that were not approved before.
	// It must not call the catalog. Nil when nobody wants to know.
	Observe func(Admission)
	Logger  *slog.Logger
}

// New makes a catalog of the configured servers; Run keeps it up to date.
func New(o Options) *Catalog {
	c := &Catalog{
		Options: o, servers: o.Servers, infer: o.Infer, judges: o.Judge, names: scan.NewCrossRefs(),
		states: map[string]upstream.State{}, lists: map[string]*list{}, offers: map[string]*Offers{},
		wake: make(chan struct{}, 1), unsaved: make(chan struct{}, 1),
		receiving: make(chan struct{}, receivingPerCore*runtime.GOMAXPROCS(0)),
	}
	c.Refresh()
	o.Book.Follow(c.decided)
	return c
}

// Current is the latest snapshot.
func (c *Catalog) Current() *Snapshot { return c.current.Load() }

// StateChanged implements upstream.Observer.
func (c *Catalog) StateChanged(s upstream.State) {
	c.mu.Lock()
	c.states[s.Name] = s
	c.mu.Unlock()
	signal(c.wake)
}

// receivingPerCore is how many lists are taken over at a time. Were it all that come at
// once, each would be done when the last is, and its time to be stored over by then.
const receivingPerCore = 4

// ToolsListed implements upstream.Observer.
func (c *Catalog) ToolsListed(server string, tools []*tool.Definition) {
	c.receiving <- struct{}{}
	defer func() { <-c.receiving }()
	ctx, cancel := context.WithTimeout(context.Background(), admitTime)
	defer cancel()
	if c.receive(ctx, server, tools, true) {
		signal(c.unsaved)
	}
	signal(c.wake)
}

// Prepare implements config.Component: the commit publishes the new status of
// every tool before it returns.
func (c *Catalog) Prepare(next *config.Config) (func(), error) {
	for _, s := range next.Servers {
		c.mu.Lock()
		l := c.lists[s.Name]
		c.mu.Unlock()
		if l != nil && counts(infers(s, next.Intent.InferHints)) {
			inferAll(l.entries)
		}
	}
	return func() {
		c.mu.Lock()
		c.servers, c.infer, c.judges = next.Servers, next.Intent.InferHints, next.Intent.JudgeArguments
		for _, l := range c.lists {
			l.admitted = false // by another trust, perhaps
		}
		for server, o := range c.offers {
			next := o.clone()
			next.admitted = false
			c.offers[server] = next
		}
		c.mu.Unlock()
		c.Refresh()
		signal(c.unsaved)
	}, nil
}

// decided publishes what was decided. What a server listed that is launched in
// another way from now on is found as before, but is not what it says of itself
// any more.
func (c *Catalog) decided(d approval.Decided) {
	if d.Relaunched {
		c.mu.Lock()
		if l := c.lists[d.Server]; l != nil {
			next := *l
			next.received = false
			c.lists[d.Server] = &next
		}
		delete(c.offers, d.Server)
		c.mu.Unlock()
	}
	c.Refresh()
}

// Remember has all lists saved again: the store may have lost them.
func (c *Catalog) Remember() {
	c.mu.Lock()
	for _, l := range c.lists {
		l.saved = false
	}
	c.mu.Unlock()
	signal(c.unsaved)
}

// receive takes a list over and reports whether it differs from the one known.
func (c *Catalog) receive(ctx context.Context, server string, tools []*tool.Definition, received bool) bool {
	for {
		_, infer, _ := c.configured(server)
		c.mu.Lock()
		old := c.lists[server]
		c.mu.Unlock()
		if old != nil && old.received && !received {
			return false // what a restart remembers never replaces what a server said
		}
		// Analysing takes long, so it is done without the lock; whoever was
		// quicker meanwhile makes it necessary to look again.
		entries, changed := merge(old, tools, c.names)
		if changed {
			c.name(server, entries)
		}
		if counts(infer) {
			inferAll(entries)
		}
		var part *search.Part
		if changed {
			part = search.NewPart(server, tools)
		} else {
			part = old.part
		}
		next := &list{entries: entries, part: part, received: received, saved: !received || !changed && old.saved, beyond: entriesBeyond(entries)}
		if !changed {
			next.beyond = old.beyond
		}
		_, next.admitted = c.admit(ctx, server, old, entries, received)
		if replace(c, c.lists, server, old, next) {
			for i, e := range entries {
				tools[i] = e.definition // who has listed them need not keep them as well
			}
			if changed && received {
				c.doubt(ctx, true)
			}
			return changed
		}
	}
}

// replace puts next in the place of old in one of the catalog's maps by server,
// unless something else stands there or the server is gone.
func replace[T comparable](c *Catalog, of map[string]T, server string, old, next T) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if of[server] != old {
		return false
	}
	of[server] = next
	return true
}

// Run loads the remembered tools, publishes what changes and remembers what is
// received, until ctx ends.
func (c *Catalog) Run(ctx context.Context) {
	var keeping sync.WaitGroup
	keeping.Go(func() {
		c.load(ctx)
		c.keep(ctx)
	})
	defer keeping.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.wake:
		}
		started := time.Now()
		c.Refresh()
		// When many servers list at once, that takes a quarter of the time of a
		// core at most; what arrives meanwhile goes into the next snapshot.
		pause(ctx, 3*time.Since(started))
	}
}

func pause(ctx context.Context, d time.Duration) {
	if d < time.Millisecond {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// load takes over what an earlier process remembered: first what is decided.
func (c *Catalog) load(ctx context.Context) {
	remembered, err := c.Keeper.LoadTools(ctx)
	for server, raws := range remembered {
		c.names.SetListed(server, raws) // before anything is judged
	}
	c.loadBook(ctx)
	if err != nil {
		remembered, err = c.Keeper.LoadTools(ctx)
	}
	if err != nil {
		if ctx.Err() == nil {
			c.Logger.Warn("the last known tools cannot be loaded", "error", err)
		}
		return
	}
	var taking sync.WaitGroup
	for server, raws := range remembered {
		taking.Go(func() { c.remembered(ctx, server, raws) })
	}
	taking.Wait()
	c.doubts.again() // who came while not all of this was there
	signal(c.wake)
	signal(c.unsaved)
}

// remembered takes over what a server listed in an earlier process.
func (c *Catalog) remembered(ctx context.Context, server string, raws []json.RawMessage) {
	c.receiving <- struct{}{}
	defer func() { <-c.receiving }()
	tools := make([]*tool.Definition, 0, len(raws))
	for _, raw := range raws {
		if d, err := tool.ParseDefinition(server, raw); err == nil {
			tools = append(tools, &d)
		}
	}
	c.receive(ctx, server, tools, false)
}

// keep accepts what could not be accepted yet, saves lists that were received
// and forgets those of servers that are no longer configured.
func (c *Catalog) keep(ctx context.Context) {
	var again <-chan time.Time // set while something could not be accepted
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.unsaved:
		case <-again:
		}
		again = nil
		admitted, doubted := c.admitRest(ctx), c.doubt(ctx, false)
		if !admitted || !doubted {
			again = time.After(admitAgain)
		}
		if !doubted {
			continue // names that are remembered are taken for looked at
		}
		save, forget := c.unkept()
		for server, l := range save {
			if err := c.Keeper.SaveTools(ctx, server, l.raws()); err != nil {
				if ctx.Err() == nil {
					c.Logger.Warn("the tools of a server cannot be remembered", "server", server, "error", err)
				}
				continue
			}
			c.mu.Lock()
			l.saved = true
			c.mu.Unlock()
		}
		c.lookBeyond()
		for _, server := range forget {
			if err := c.Keeper.ForgetTools(ctx, server); err != nil && ctx.Err() == nil {
				c.Logger.Warn("the tools of a removed server cannot be forgotten", "server", server, "error", err)
			}
		}
	}
}

// unkept returns the lists to save, and takes away and names those to forget.
func (c *Catalog) unkept() (save map[string]*list, forget []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	save = map[string]*list{}
	configured := make(map[string]bool, len(c.servers))
	for i := range c.servers {
		configured[c.servers[i].Name] = true
	}
	maps.DeleteFunc(c.offers, func(server string, _ *Offers) bool { return !configured[server] })
	for _, server := range slices.Sorted(maps.Keys(c.lists)) {
		l := c.lists[server]
		switch {
		case !configured[server]:
			delete(c.lists, server)
			delete(c.states, server)
			c.names.Remove(server)
			forget = append(forget, server)
		case !l.saved:
			save[server] = l
		}
	}
	return save, forget
}

// signal leaves a note that something is to be done; one note is enough.
func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// Refresh publishes a snapshot of what is known now, before it returns.
func (c *Catalog) Refresh() {
	c.building.Lock()
	defer c.building.Unlock()

	old := c.current.Load()
	next := &Snapshot{byName: map[string]*Server{}, replaced: make(chan struct{})}
	var parts []*search.Part

	c.mu.Lock()
	size := 0
	for _, l := range c.lists {
		size += len(l.entries)
	}
	next.tools = make(map[tool.ID]*Tool, size)
	tools := make([]*Tool, 0, size)
	for _, configured := range c.servers {
		decided := c.Book.View(configured.Name)
		server := &Server{
			Name: configured.Name, Protocol: configured.Protocol,
			Enabled: configured.Enabled, Quarantined: Quarantined(configured, decided),
			State: c.states[configured.Name],
		}
		if l := c.lists[configured.Name]; l != nil {
			server.Listed, server.Told = true, l.received
			parts = append(parts, l.part)
			first := len(tools)
			for _, e := range l.entries {
				t := newTool(configured, decided, infers(configured, c.infer), e)
				t.Judges = c.judges
				tools = append(tools, t)
				if amongWhich(t) == amongCallable {
					server.Callable++
				}
				next.tools[t.ID] = t
			}
			server.Tools = tools[first:len(tools):len(tools)]
		}
		next.servers = append(next.servers, server)
		next.byName[server.Name] = server
	}
	c.mu.Unlock()

	slices.SortFunc(next.servers, func(a, b *Server) int { return cmp.Compare(a.Name, b.Name) })
	var before *lookup
	if old != nil {
		next.version, before = old.version+1, old.lookup
	}
	next.lookup = newLookup(before, parts, tools)
	c.current.Store(next)
	if old != nil {
		close(old.replaced)
	}
}
