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

// eventCaller is the caller that reads servers for events. It sees all servers, because all listeners may see them.
var eventCaller = Caller{Actor: auth.Actor{Kind: auth.Admin}, Source: auth.REST}

// changeScope describes which parts of a server changed.
type changeScope uint8

const (
	serverChanged changeScope = 1 << iota // the server's entry in a list
	toolsChanged                          // its tools or the decisions about them
)

// changeSet collects changes to announce that are not activity records.
type changeSet struct {
	servers map[string]changeScope // "" means all servers
	config  bool
	keys    []string
	refused string
	pending bool // whether pending calls or leases changed
	pause   bool // whether calls were paused or resumed
	logins  []loginChange
}

// loginChange is an event about the login to a server.
type loginChange struct {
	kind   EventKind
	server string
}

func (c *changeSet) isEmpty() bool {
	return len(c.servers) == 0 && !c.config && !c.pending && !c.pause && len(c.logins) == 0
}

func (c *changeSet) addServerChange(server string, what changeScope) {
	if c.servers == nil {
		c.servers = map[string]changeScope{}
	}
	c.servers[server] |= what
}

// removed is the state of a server that no longer exists.
const removed = "removed"

// eventsMaxKeys limits the number of keys in an event.
const eventsMaxKeys = 1000

func (c *changeSet) addConfigChange(keys []string, refused error) {
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

// addDifferences adds the differences between two catalog snapshots.
func (c *changeSet) addDifferences(old, now *catalog.Snapshot) {
	for _, s := range now.Servers() {
		was := old.Server(s.Name)
		if was == nil {
			c.addServerChange(s.Name, serverChanged|toolsChanged)
			continue
		}
		if !sameTools(was.Tools, s.Tools) {
			c.addServerChange(s.Name, serverChanged|toolsChanged) // the server list shows the number of tools
		}
		a, b := *was, *s
		if a.Tools, b.Tools = nil, nil; !reflect.DeepEqual(a, b) {
			c.addServerChange(s.Name, serverChanged)
		}
	}
	for _, s := range old.Servers() {
		if now.Server(s.Name) == nil {
			c.addServerChange(s.Name, serverChanged|toolsChanged)
		}
	}
}

func sameTools(a, b []*catalog.Tool) bool {
	return slices.EqualFunc(a, b, func(a, b *catalog.Tool) bool {
		return a.ID == b.ID && a.Status == b.Status && a.CallWith == b.CallWith && a.Effective == b.Effective && bytes.Equal(a.Raw, b.Raw)
	})
}

// newFullChangeSet returns a change set that makes a listener reload everything.
func newFullChangeSet() changeSet {
	return changeSet{servers: map[string]changeScope{"": serverChanged | toolsChanged}, config: true, pending: true, pause: true}
}

// appendEventsTo appends the events of changes to a chunk, at the chunk's end position.
func (c *changeSet) appendEventsTo(ctx context.Context, to *eventChunk, servers ServerLister) {
	say := func(kind EventKind, change any) {
		to.data = appendEvent(to.data, to.to, kind, change)
		to.registerAppendedEvent(kind, to.to)
	}
	list, _ := servers.Servers(ctx, eventCaller, Nothing{}) // after an error, the list is empty
	states := map[string]string{}
	for _, s := range list.Servers {
		states[s.Name] = s.State
	}
	names := map[string]changeScope{}
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
		if names[name]&serverChanged != 0 {
			state, there := states[name]
			if !there {
				state = removed
			}
			say(EventServerChanged, serverChangedData{name, state})
		}
		if names[name]&toolsChanged != 0 {
			say(EventToolChanged, toolsChangedData{name})
		}
	}
	if c.config {
		say(EventConfigChanged, configChangedData{append([]string{}, c.keys...), c.refused})
	}
	if c.pending {
		say(EventPendingChanged, struct{}{})
	}
	if c.pause {
		say(EventPauseChanged, struct{}{})
	}
	for _, l := range c.logins {
		say(l.kind, toolsChangedData{l.server})
	}
}
