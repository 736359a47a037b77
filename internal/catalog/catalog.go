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

// ToolStore saves the last known tools of servers across restarts.
type ToolStore interface {
	SaveTools(ctx context.Context, server string, raws []json.RawMessage) error
	LoadTools(ctx context.Context) (map[string][]json.RawMessage, error)
	ForgetTools(ctx context.Context, server string) error
}

// Catalog follows configuration and upstreams and publishes snapshots. It is an
// upstream.Observer and a config.Component.
type Catalog struct {
	Options
	current   atomic.Pointer[Snapshot]
	crossRefs *scan.CrossRefIndex // of all listed tools
	rechecks  recheckQueue

	// wake signals Run that something changed. unsaved signals saveAndAdmitLoop that a list was received.
	wake, unsaved chan struct{}

	// loaded is closed when a snapshot has the saved tools.
	loaded chan struct{}

	// listSlots has a slot for each list that is being processed.
	listSlots chan struct{}

	// publishMu is held while a snapshot is built, so that snapshots are published in the
	// order of their inputs.
	publishMu sync.Mutex

	mu              sync.Mutex // guards the fields below
	servers         []config.Server
	inferMode       policy.InferMode
	argumentEffects policy.ArgumentEffectMode
	states          map[string]upstream.State
	lists           map[string]*toolList
	primitives      map[string]*ServerPrimitives
}

// recheckQueue makes one goroutine at a time compare accepted definitions with the names of tools that were listed
// later. One check serves all requests so far.
type recheckQueue struct {
	mu                   sync.Mutex // guards the fields below; not held during a check
	requested, completed uint64     // number of all requests, and of served requests
	running              bool
}

// Options configure a Catalog.
type Options struct {
	Servers         []config.Server           // at the start
	Infer           policy.InferMode          // at the start
	ArgumentEffects policy.ArgumentEffectMode // at the start
	Store           ToolStore
	Approvals       *approval.Book
	// Observe receives the outcome for definitions that were not approved before. It must
	// not call the catalog. May be nil.
	Observe func(AdmissionOutcome)
	Logger  *slog.Logger
}

// New returns a catalog of the configured servers. Run keeps it up to date.
func New(o Options) *Catalog {
	c := &Catalog{
		Options: o, servers: o.Servers, inferMode: o.Infer, argumentEffects: o.ArgumentEffects, crossRefs: scan.NewCrossRefIndex(),
		states: map[string]upstream.State{}, lists: map[string]*toolList{}, primitives: map[string]*ServerPrimitives{},
		wake: make(chan struct{}, 1), unsaved: make(chan struct{}, 1), loaded: make(chan struct{}),
		listSlots: make(chan struct{}, listsPerCore*runtime.GOMAXPROCS(0)),
	}
	c.Publish()
	o.Approvals.Subscribe(c.publishDecision)
	return c
}

// Current returns the latest snapshot.
func (c *Catalog) Current() *Snapshot { return c.current.Load() }

// LoadedChan is closed when the tools that an earlier process saved are in the snapshot, or cannot be loaded.
func (c *Catalog) LoadedChan() <-chan struct{} { return c.loaded }

// StateChanged implements upstream.Observer.
func (c *Catalog) StateChanged(s upstream.State) {
	c.mu.Lock()
	c.states[s.Name] = s
	c.mu.Unlock()
	trySignal(c.wake)
}

// listsPerCore is the number of lists that are processed at a time per core. If all lists that arrive at once were
// processed together, each would finish with the last one, after its time limit.
const listsPerCore = 4

// ToolsListed implements upstream.Observer.
func (c *Catalog) ToolsListed(server string, tools []*tool.Definition) {
	c.listSlots <- struct{}{}
	defer func() { <-c.listSlots }()
	ctx, cancel := context.WithTimeout(context.Background(), admitTimeout)
	defer cancel()
	if c.storeToolList(ctx, server, tools, true) {
		trySignal(c.unsaved)
	}
	trySignal(c.wake)
}

// PrepareConfig implements config.Component: the commit publishes the new status of
// every tool before it returns.
func (c *Catalog) PrepareConfig(next *config.Config) (func(), error) {
	for _, s := range next.Servers {
		c.mu.Lock()
		l := c.lists[s.Name]
		c.mu.Unlock()
		if l != nil && areInferredHintsEnforced(serverHintInferenceMode(s, next.Intent.InferHints)) {
			precomputeInferredHints(l.entries)
		}
	}
	return func() {
		c.mu.Lock()
		c.servers, c.inferMode, c.argumentEffects = next.Servers, next.Intent.InferHints, next.Intent.JudgeArguments
		for _, l := range c.lists {
			l.admitted = false // the trust may have changed
		}
		for server, o := range c.primitives {
			next := o.clone()
			next.admitted = false
			c.primitives[server] = next
		}
		c.mu.Unlock()
		c.Publish()
		trySignal(c.unsaved)
	}, nil
}

// publishDecision publishes a decision. After a change of how a server is launched, a search still finds its tools, but
// its list no longer counts as received.
func (c *Catalog) publishDecision(d approval.DecisionEvent) {
	if d.Relaunched {
		c.mu.Lock()
		if l := c.lists[d.Server]; l != nil {
			next := *l
			next.received = false
			c.lists[d.Server] = &next
		}
		delete(c.primitives, d.Server)
		c.mu.Unlock()
	}
	c.Publish()
}

// ResaveAllToolLists makes Run save all tool lists again, because the store may have lost them.
func (c *Catalog) ResaveAllToolLists() {
	c.mu.Lock()
	for _, l := range c.lists {
		l.saved = false
	}
	c.mu.Unlock()
	trySignal(c.unsaved)
}

// storeToolList replaces a server's list and reports whether it differs from the known one.
func (c *Catalog) storeToolList(ctx context.Context, server string, tools []*tool.Definition, received bool) bool {
	for {
		configured, infer, _ := c.serverConfig(server)
		c.mu.Lock()
		old := c.lists[server]
		c.mu.Unlock()
		if old != nil && old.received && !received {
			return false // a saved list never replaces a received one
		}
		// Analysis takes long, so it runs without the lock and repeats if the list was
		// replaced in the meantime.
		entries, changed := reuseUnchangedTools(old, tools, c.crossRefs)
		if changed {
			c.registerToolNames(server, entries)
		}
		if areInferredHintsEnforced(infer) {
			precomputeInferredHints(entries)
		}
		settings := configured.ToolSettings
		var part *search.ServerIndexPart
		if changed {
			part = newIndexPart(server, settings, tools)
		} else {
			part, settings = old.indexPart, old.settings
		}
		next := &toolList{entries: entries, indexPart: part, settings: settings, received: received, saved: !received || !changed && old.saved, externalRefs: newExternalRefsFunc(entries)}
		if !changed {
			next.externalRefs = old.externalRefs
		}
		_, next.admitted = c.admitTools(ctx, server, old, entries, received)
		if replaceIfUnchanged(c, c.lists, server, old, next) {
			for i, e := range entries {
				tools[i] = e.definition // so that the caller does not keep a second copy
			}
			if changed && received {
				c.recheckAccepted(ctx, true)
			}
			return changed
		}
	}
}

// replaceIfUnchanged replaces old by next in one of the catalog's maps by server, unless the entry has changed or the server
// was removed.
func replaceIfUnchanged[T comparable](c *Catalog, of map[string]T, server string, old, next T) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if of[server] != old {
		return false
	}
	of[server] = next
	return true
}

// Run loads the saved tools, publishes changes and saves received lists, until ctx ends.
func (c *Catalog) Run(ctx context.Context) {
	var keeping sync.WaitGroup
	keeping.Go(func() {
		c.loadSavedTools(ctx)
		c.Publish()
		close(c.loaded)
		c.saveAndAdmitLoop(ctx)
	})
	defer keeping.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.wake:
		}
		started := time.Now()
		c.Publish()
		// When many servers list at once, snapshots use at most a quarter of a core. Lists that arrive in the meantime go into
		// the next snapshot.
		sleepContext(ctx, 3*time.Since(started))
	}
}

func sleepContext(ctx context.Context, d time.Duration) {
	if d < time.Millisecond {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// loadSavedTools restores the tools that an earlier process saved, after the approvals.
func (c *Catalog) loadSavedTools(ctx context.Context) {
	remembered, err := c.Store.LoadTools(ctx)
	for server, raws := range remembered {
		c.crossRefs.SetDefinitions(server, raws) // before any evaluation
	}
	c.loadApprovals(ctx)
	if err != nil {
		remembered, err = c.Store.LoadTools(ctx)
	}
	if err != nil {
		if ctx.Err() == nil {
			c.Logger.Warn("could not load the last known tools", "error", err)
		}
		return
	}
	var taking sync.WaitGroup
	for server, raws := range remembered {
		taking.Go(func() { c.restoreTools(ctx, server, raws) })
	}
	taking.Wait()
	c.rechecks.restart() // for servers that listed before the restore was complete
	trySignal(c.wake)
	trySignal(c.unsaved)
}

// restoreTools restores the tools that a server listed in an earlier process.
func (c *Catalog) restoreTools(ctx context.Context, server string, raws []json.RawMessage) {
	c.listSlots <- struct{}{}
	defer func() { <-c.listSlots }()
	tools := make([]*tool.Definition, 0, len(raws))
	for _, raw := range raws {
		if d, err := tool.ParseDefinition(server, raw); err == nil {
			tools = append(tools, &d)
		}
	}
	c.storeToolList(ctx, server, tools, false)
}

// finalSaveTimeout limits how long the lists that are not saved yet may delay the end of the process.
const finalSaveTimeout = 2 * time.Second

// saveAndAdmitLoop retries pending admissions, saves received lists, and deletes those of servers that are no longer
// configured. When ctx ends, it saves a last time: a list that is not saved would be reported again after a restart.
func (c *Catalog) saveAndAdmitLoop(ctx context.Context) {
	var again <-chan time.Time // set while a failed admission waits for its retry
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), finalSaveTimeout)
			defer cancel()
			if c.recheckAccepted(last, false) && c.rechecks.isDone() {
				c.savePending(last)
			}
			return
		case <-c.unsaved:
		case <-again:
		}
		again = nil
		admitted, doubted := c.retryAdmissions(ctx), c.recheckAccepted(ctx, false)
		if !admitted || !doubted {
			again = time.After(admitRetryInterval)
		}
		if doubted { // saved names count as checked
			c.savePending(ctx)
		}
	}
}

// savePending saves received lists, and deletes those of servers that are no longer configured.
func (c *Catalog) savePending(ctx context.Context) {
	save, forget := c.takePendingSaves()
	for server, l := range save {
		if err := c.Store.SaveTools(ctx, server, l.rawDefinitions()); err != nil {
			if ctx.Err() == nil {
				c.Logger.Warn("could not store the tools of a server", "server", server, "error", err)
			}
			continue
		}
		c.mu.Lock()
		l.saved = true
		c.mu.Unlock()
	}
	c.precomputeExternalRefs()
	for _, server := range forget {
		if err := c.Store.ForgetTools(ctx, server); err != nil && ctx.Err() == nil {
			c.Logger.Warn("the tools of a removed server cannot be forgotten", "server", server, "error", err)
		}
	}
}

// takePendingSaves returns the lists to save and the servers whose saved lists to delete. It removes those servers from
// the catalog.
func (c *Catalog) takePendingSaves() (save map[string]*toolList, forget []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	save = map[string]*toolList{}
	configured := make(map[string]bool, len(c.servers))
	for i := range c.servers {
		configured[c.servers[i].Name] = true
	}
	maps.DeleteFunc(c.primitives, func(server string, _ *ServerPrimitives) bool { return !configured[server] })
	for _, server := range slices.Sorted(maps.Keys(c.lists)) {
		l := c.lists[server]
		switch {
		case !configured[server]:
			delete(c.lists, server)
			delete(c.states, server)
			c.crossRefs.RemoveServer(server)
			forget = append(forget, server)
		case !l.saved:
			save[server] = l
		}
	}
	return save, forget
}

// trySignal sends without blocking. One pending signal is enough.
func trySignal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// Publish publishes a snapshot of the current state before it returns.
func (c *Catalog) Publish() {
	c.publishMu.Lock()
	defer c.publishMu.Unlock()

	old := c.current.Load()
	next := &Snapshot{byName: map[string]*Server{}, replaced: make(chan struct{})}
	var parts []*search.ServerIndexPart

	c.mu.Lock()
	size := 0
	for _, l := range c.lists {
		size += len(l.entries)
	}
	next.tools = make(map[tool.ID]*Tool, size)
	tools := make([]*Tool, 0, size)
	for _, configured := range c.servers {
		decided := c.Approvals.ServerView(configured.Name)
		server := &Server{
			Name: configured.Name, Protocol: configured.Protocol,
			Enabled: configured.Enabled, Quarantined: IsQuarantined(configured, decided),
			State: c.states[configured.Name],
		}
		if l := c.lists[configured.Name]; l != nil {
			server.Listed, server.ListedThisRun = true, l.received
			l = c.indexWithSettings(&configured, l)
			parts = append(parts, l.indexPart)
			first := len(tools)
			for _, e := range l.entries {
				t := newTool(configured, decided, serverHintInferenceMode(configured, c.inferMode), e)
				t.ArgumentEffects = c.argumentEffects
				tools = append(tools, t)
				next.tools[t.ID] = t
			}
			server.Tools = tools[first:len(tools):len(tools)]
			server.settings = configured.ToolSettings
			next.registerToolSettings(&configured)
			for _, t := range server.Tools {
				if visibilityOf(t) == visibleCallable {
					server.Callable++
				}
			}
		}
		next.servers = append(next.servers, server)
		next.byName[server.Name] = server
	}
	c.mu.Unlock()

	slices.SortFunc(next.servers, func(a, b *Server) int { return cmp.Compare(a.Name, b.Name) })
	var before *searchIndex
	if old != nil {
		next.version, before = old.version+1, old.lookup
	}
	next.lookup = newSearchIndex(before, parts, tools)
	c.current.Store(next)
	if old != nil {
		close(old.replaced)
	}
}
