package ops

import "mcpproxy/internal/config/auth"

// Usable is a server whose tools a caller may use.
type Usable struct {
	Name   string
	Listed bool // its tools are known
	Tools  int  // that can be called
}

// Usable returns the servers that are enabled, approved and in the caller's scope,
// by name, and a channel that is closed when that may have changed.
func (g *Gateway) Usable(c *auth.Caller) (all []Usable, changed <-chan struct{}) {
	snapshot := g.Catalog.Current().Within(c.Scope())
	for _, s := range snapshot.Servers() {
		if s.Enabled && !s.Quarantined {
			all = append(all, Usable{s.Name, s.Listed, s.Callable})
		}
	}
	return all, snapshot.Replaced()
}

// Calls returns how many calls each server had in the last 30 days, as was last looked
// at; nil before the first time, and for a caller with bounds, since most of the calls
// are those of others. Nobody writes to it.
func (g *Gateway) Calls(c *auth.Caller) map[string]int64 {
	if calls := g.calls.Load(); calls != nil && !c.Scope().Bounded() {
		return *calls
	}
	return nil
}
