package ops

import (
	"bytes"
	"context"
	"maps"
	"reflect"
	"slices"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/store/redact"
)

// changedBy is who looks: who may listen to events may see all servers.
var changedBy = Caller{Actor: auth.Actor{Kind: auth.Admin}, Source: auth.REST}

// about is what changed of a server.
type about uint8

const (
	aboutServer about = 1 << iota // what a list of servers shows
	aboutTools                    // its tools, or what is decided about them
)

// changes are what is to be told that is no record.
type changes struct {
	servers map[string]about // "" is every one
	config  bool
	keys    []string
	refused string
	pending bool // calls that wait for a person, or leases
}

func (c *changes) none() bool { return len(c.servers) == 0 && !c.config && !c.pending }

func (c *changes) add(server string, what about) {
	if c.servers == nil {
		c.servers = map[string]about{}
	}
	c.servers[server] |= what
}

// removed is the state of a server that is not there any more.
const removed = "removed"

// eventsMaxKeys is how many keys an event names.
const eventsMaxKeys = 1000

func (c *changes) addConfig(keys []string, refused error) {
	c.config, c.refused = true, ""
	if refused != nil {
		c.refused = redact.Text(refused.Error())
	}
	for _, key := range keys {
		if len(c.keys) < eventsMaxKeys && !slices.Contains(c.keys, key) {
			c.keys = append(c.keys, key)
		}
	}
}

// compare adds what differs between two snapshots.
func (c *changes) compare(old, now *catalog.Snapshot) {
	for _, s := range now.Servers() {
		was := old.Server(s.Name)
		if was == nil {
			c.add(s.Name, aboutServer|aboutTools)
			continue
		}
		if !sameTools(was.Tools, s.Tools) {
			c.add(s.Name, aboutServer|aboutTools) // a list of servers shows how many
		}
		a, b := *was, *s
		if a.Tools, b.Tools = nil, nil; !reflect.DeepEqual(a, b) {
			c.add(s.Name, aboutServer)
		}
	}
	for _, s := range old.Servers() {
		if now.Server(s.Name) == nil {
			c.add(s.Name, aboutServer|aboutTools)
		}
	}
}

func sameTools(a, b []*catalog.Tool) bool {
	return slices.EqualFunc(a, b, func(a, b *catalog.Tool) bool {
		return a.ID == b.ID && a.Status == b.Status && a.CallWith == b.CallWith && a.Effective == b.Effective && bytes.Equal(a.Raw, b.Raw)
	})
}

// all is that everything may have changed.
func all() changes {
	return changes{servers: map[string]about{"": aboutServer | aboutTools}, config: true, pending: true}
}

// tell adds the events of changes to a chunk that ends at its place.
func (c *changes) tell(ctx context.Context, to *chunk, servers Servers) {
	say := func(kind EventKind, change any) {
		to.data = appendChange(to.data, to.to, kind, change)
		to.note(kind, to.to)
	}
	list, _ := servers.Servers(ctx, changedBy, Nothing{}) // those there are
	states := map[string]string{}
	for _, s := range list.Servers {
		states[s.Name] = s.State
	}
	names := map[string]about{}
	if every := c.servers[""]; every != 0 {
		for name := range states {
			names[name] = every
		}
	}
	for name, what := range c.servers {
		names[name] |= what
	}
	delete(names, "")
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if names[name]&aboutServer != 0 {
			state, there := states[name]
			if !there {
				state = removed
			}
			say(EventServerChanged, serverChange{name, state})
		}
		if names[name]&aboutTools != 0 {
			say(EventToolChanged, toolChange{name})
		}
	}
	if c.config {
		say(EventConfigChanged, configChange{append([]string{}, c.keys...), c.refused})
	}
	if c.pending {
		say(EventPendingChanged, struct{}{})
	}
}
