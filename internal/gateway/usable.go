package gateway

import (
	"mcpproxy/internal/auth"
	"mcpproxy/internal/door"
)

// Usable is a server whose tools an actor may use.
type Usable struct {
	Name   string
	Listed bool // its tools are known
	Tools  int  // that can be called
}

// Usable returns the servers that are enabled, approved and in the actor's scope, by
// name, and a channel that is closed when that may have changed.
func (g *Gateway) Usable(a auth.Actor) (all []Usable, changed <-chan struct{}) {
	snapshot := g.Catalog.Current()
	for _, s := range snapshot.Servers() {
		if s.Enabled && !s.Quarantined && door.InScope(a, s.Name) {
			all = append(all, Usable{s.Name, s.Listed, s.Callable})
		}
	}
	return all, snapshot.Replaced()
}

// Calls returns how many calls each server had in the last 30 days, as was last looked
// at; nil before the first time. Nobody writes to it.
func (g *Gateway) Calls() map[string]int64 {
	if calls := g.calls.Load(); calls != nil {
		return *calls
	}
	return nil
}
