package ops

import "mcpproxy/internal/config/auth"

// UsableServer is a server whose tools a caller may use.
type UsableServer struct {
	Name   string
	Listed bool // its tools are known
	Tools  int  // number of callable tools
}

// UsableServers returns the enabled, approved servers in the caller's scope by name, and a channel that is closed when they may have changed.
func (g *Gateway) UsableServers(c *auth.Caller) (all []UsableServer, changed <-chan struct{}) {
	snapshot := g.Catalog.Current().ScopedTo(c.Scope())
	for _, s := range snapshot.Servers() {
		if s.Enabled && !s.Quarantined {
			all = append(all, UsableServer{s.Name, s.Listed, s.Callable})
		}
	}
	return all, snapshot.ReplacedChan()
}

// CallsPerServer returns the calls of each server in the last 30 days, as last counted. It is nil before the first count, and for a caller with a limited scope,
// because the calls are mostly those of others. Callers must not modify it.
func (g *Gateway) CallsPerServer(c *auth.Caller) map[string]int64 {
	if calls := g.calls.Load(); calls != nil && !c.Scope().IsBounded() {
		return *calls
	}
	return nil
}
