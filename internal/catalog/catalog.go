// Package catalog makes one immutable snapshot of what configuration, upstreams
// and (later) approvals say: the servers, the tools with their effective hints
// and status, the counts, and the search index. It keeps each server's last
// known tools, also across restarts, so that a server which is away, disabled
// or still connecting can be found.
//
// It guarantees that Current is one atomic load, that everything read from one
// Snapshot belongs together, that a snapshot never changes, and that discovery
// and calls see the same hints and the same status. It contacts no server and
// decides no call.
package catalog

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"mcpproxy/internal/config"
	"mcpproxy/internal/schema"
	"mcpproxy/internal/search"
	"mcpproxy/internal/tool"
	"mcpproxy/internal/upstream"
)

// Keeper remembers the last known tools of servers across restarts.
type Keeper interface {
	SaveTools(ctx context.Context, server string, raws []json.RawMessage) error
	LoadTools(ctx context.Context) (map[string][]json.RawMessage, error)
	ForgetTools(ctx context.Context, server string) error
}

// Catalog follows configuration and upstreams and publishes snapshots. It is an
// upstream.Observer and a config.Component.
type Catalog struct {
	logger  *slog.Logger
	keeper  Keeper
	current atomic.Pointer[Snapshot]

	// wake tells Run that something changed; unsaved that a list was received.
	wake, unsaved chan struct{}

	// building is held while a snapshot is made, so that snapshots are
	// published in the order of what they are made from.
	building sync.Mutex

	mu      sync.Mutex // guards the fields below
	servers []config.Server
	states  map[string]upstream.State
	lists   map[string]*list
	// contents counts the changes of what the index is made from.
	contents uint64
}

// list is the last known tools of one server.
type list struct {
	entries  []*entry
	received bool // from the server itself, in this process
	saved    bool
}

// entry is one definition with what is derived from it alone, so that it is
// derived once however often the rest changes.
type entry struct {
	definition tool.Definition
	document   search.Document
	arguments  func() *schema.Schema
}

// New makes a catalog of the configured servers; Run keeps it up to date.
func New(servers []config.Server, keeper Keeper, logger *slog.Logger) *Catalog {
	c := &Catalog{
		logger: logger, keeper: keeper, servers: servers,
		states: map[string]upstream.State{}, lists: map[string]*list{},
		wake: make(chan struct{}, 1), unsaved: make(chan struct{}, 1),
	}
	c.rebuild()
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

// ToolsListed implements upstream.Observer.
func (c *Catalog) ToolsListed(server string, tools []tool.Definition) {
	if c.receive(server, tools, true) {
		signal(c.unsaved)
	}
	signal(c.wake)
}

// Prepare implements config.Component: the commit publishes the new status of
// every tool before it returns.
func (c *Catalog) Prepare(next *config.Config) (func(), error) {
	return func() {
		c.mu.Lock()
		c.servers = next.Servers
		c.contents++
		c.mu.Unlock()
		c.rebuild()
		signal(c.unsaved)
	}, nil
}

// receive takes a list over and says whether it differs from the one known.
func (c *Catalog) receive(server string, tools []tool.Definition, received bool) bool {
	for {
		c.mu.Lock()
		old := c.lists[server]
		c.mu.Unlock()
		if old != nil && old.received && !received {
			return false // what a restart remembers never replaces what a server said
		}
		// Analysing takes long, so it is done without the lock; whoever was
		// quicker meanwhile makes it necessary to look again.
		entries, changed := merge(old, tools)
		next := &list{entries: entries, received: received, saved: !received || !changed && old.saved}
		if c.replace(server, old, next, changed) {
			return changed
		}
	}
}

// replace puts next in the place of old, unless something else stands there.
func (c *Catalog) replace(server string, old, next *list, changed bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lists[server] != old {
		return false
	}
	c.lists[server] = next
	if changed {
		c.contents++
	}
	return true
}

// merge makes entries for tools, taking over those of old that did not change.
func merge(old *list, tools []tool.Definition) (entries []*entry, changed bool) {
	known := map[string]*entry{}
	if old != nil {
		for _, e := range old.entries {
			known[e.definition.ID.Tool] = e
		}
	}
	entries = make([]*entry, len(tools))
	for i, d := range tools {
		e := known[d.ID.Tool]
		if e == nil || !bytes.Equal(e.definition.Raw, d.Raw) {
			e = newEntry(d)
		}
		entries[i] = e
	}
	return entries, old == nil || !slices.Equal(entries, old.entries)
}

func newEntry(d tool.Definition) *entry {
	return &entry{
		definition: d,
		document:   search.Analyze(d),
		arguments:  sync.OnceValue(func() *schema.Schema { return schema.Compile(d.InputSchema) }),
	}
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
		c.rebuild()
		// When many servers list at once, rebuilding takes half the time at
		// most; what arrives meanwhile goes into the next snapshot.
		pause(ctx, time.Since(started))
	}
}

func pause(ctx context.Context, d time.Duration) {
	if d < time.Millisecond {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// load takes over what an earlier process remembered.
func (c *Catalog) load(ctx context.Context) {
	remembered, err := c.keeper.LoadTools(ctx)
	if err != nil {
		if ctx.Err() == nil {
			c.logger.Warn("the last known tools cannot be loaded", "error", err)
		}
		return
	}
	for server, raws := range remembered {
		tools := make([]tool.Definition, 0, len(raws))
		for _, raw := range raws {
			if d, err := tool.ParseDefinition(server, raw); err == nil {
				tools = append(tools, d)
			}
		}
		c.receive(server, tools, false)
	}
	signal(c.wake)
	signal(c.unsaved)
}

// keep saves lists that were received and forgets those of servers that are
// no longer configured.
func (c *Catalog) keep(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.unsaved:
		}
		save, forget := c.unkept()
		for server, l := range save {
			if err := c.keeper.SaveTools(ctx, server, l.raws()); err != nil {
				if ctx.Err() == nil {
					c.logger.Warn("the tools of a server cannot be remembered", "server", server, "error", err)
				}
				continue
			}
			c.mu.Lock()
			l.saved = true
			c.mu.Unlock()
		}
		for _, server := range forget {
			if err := c.keeper.ForgetTools(ctx, server); err != nil && ctx.Err() == nil {
				c.logger.Warn("the tools of a removed server cannot be forgotten", "server", server, "error", err)
			}
		}
	}
}

// unkept gives the lists to save, and takes away and names those to forget.
func (c *Catalog) unkept() (save map[string]*list, forget []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	save = map[string]*list{}
	for _, server := range slices.Sorted(maps.Keys(c.lists)) {
		l := c.lists[server]
		switch {
		case !slices.ContainsFunc(c.servers, func(s config.Server) bool { return s.Name == server }):
			delete(c.lists, server)
			delete(c.states, server)
			forget = append(forget, server)
		case !l.saved:
			save[server] = l
		}
	}
	return save, forget
}

func (l *list) raws() []json.RawMessage {
	raws := make([]json.RawMessage, len(l.entries))
	for i, e := range l.entries {
		raws[i] = e.definition.Raw
	}
	return raws
}

// signal leaves a note that something is to be done; one note is enough.
func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}
