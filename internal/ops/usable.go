package ops

import "mcpproxy/internal/config/auth"

// UsableServer is a server whose tools a caller may use.
type UsableServer struct {
	Name   string
	Listed bool // whether its tools are known
	Tools  int  // number of callable tools
}

// UsableServers returns the enabled and approved servers in the caller's scope, sorted by name. It also returns a
// channel that is closed when they may have changed.
func (g *Gateway) UsableServers(c *auth.Caller) (all []UsableServer, changed <-chan struct{}) {
	snapshot := g.Catalog.Current().ScopedTo(c.Scope())
	for _, s := range snapshot.Servers() {
		if s.Enabled && !s.Quarantined {
			all = append(all, UsableServer{s.Name, s.Listed, s.Callable})
		}
	}
	return all, snapshot.ReplacedChan()
}

// CallsPerServer returns the number of calls of each server in the last 30 days, as of the last count. It returns nil
// before the first count. It also returns nil for a caller with a limited scope, because most of the calls are from
// other clients. Callers must not modify the map.
func (g *Gateway) CallsPerServer(c *auth.Caller) map[string]int64 {
	if calls := g.calls.Load(); calls != nil && !c.Scope().IsBounded() {
		return *calls
	}
	return nil
}
