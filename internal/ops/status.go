package ops

import (
	"context"
	"os"
	"slices"
	"time"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/upstream"
)

// Status returns the state of the daemon.
func (g *Gateway) Status(ctx context.Context, _ Caller, _ Nothing) (Status, error) {
	snapshot, cfg, health := g.Catalog.Current(), g.Config(), g.Log.Health()
	s := Status{
		Version: g.About.Version, PID: os.Getpid(), StartedAt: g.About.StartedAt,
		UptimeSeconds: int64(time.Since(g.About.StartedAt).Seconds()),
		Tools:         StatusTools{Total: snapshot.ToolCount(), Callable: snapshot.CallableCount()},
		Surfaces:      g.About.Surfaces(), ConfigPath: g.About.ConfigPath,
		NeedsRestart: g.About.NeedsRestart(), Warnings: slices.Concat(g.About.Warnings(), health.Refused, g.MissingApprovalWarnings(), g.loginWarnings()),
		DataDir: cfg.DataDir, Activity: health, Definitions: Definitions{g.About.LoadedToolBytes(), snapshot.TotalDefinitionSize()},
		Held: g.About.CountHeld(ctx),
	}
	if v, _ := g.PauseState(ctx, Caller{}, Nothing{}); v.Paused {
		s.Pause = &v
	}
	if g.About.Unconfirmed != nil {
		s.Unconfirmed = g.About.Unconfirmed().Count()
	}
	if err := g.About.ConfigError(); err != nil {
		s.ConfigError = err.Error()
	}
	for _, server := range snapshot.Servers() {
		for _, n := range g.Catalog.CurrentPrimitives(server.Name).Counts() {
			s.Offers.Total, s.Offers.Waiting = s.Offers.Total+n.Total, s.Offers.Waiting+n.Waiting
		}
		s.Servers.Total++
		if server.Enabled {
			s.Servers.Enabled++
		}
		switch server.State.Phase {
		case upstream.Ready:
			s.Servers.Ready++
			continue
		case upstream.Idle:
			s.Servers.Idle++
			continue
		}
		if v := g.serverView(server, nil); v.Enabled {
			s.Servers.NotReady = append(s.Servers.NotReady, NotReady{v.Name, v.State, v.Detail, v.Since, v.RetryAt})
		}
	}
	return s, nil
}

// hasLostApprovals reports whether the approvals of a server were lost and the server was not approved since.
func (g *Gateway) hasLostApprovals(s *catalog.Server) bool {
	return g.Book.ApprovalsLost() && !s.Quarantined && g.Book.ServerView(s.Name).ApprovedLaunch() == nil
}

// MissingApprovalWarnings returns warnings about approvals that are lost or not loaded yet.
func (g *Gateway) MissingApprovalWarnings() []string {
	const lost = "The database of this data directory is not the first one: the approvals of an earlier one, which was damaged or removed, are lost. "
	switch {
	case g.Book.RestrictionsLost():
		return []string{lost + restrictionsLost + " Every tool that you have not approved since waits for your approval, including new tools."}
	case slices.ContainsFunc(g.Catalog.Current().Servers(), g.hasLostApprovals):
		return []string{lost + "Blocked tools stay blocked, and disabled tools stay disabled. " +
			"New definitions are not accepted automatically until you approve a server again with `mcpproxy upstream approve`."}
	}
	select {
	case <-g.Book.LoadedChan():
		return nil
	default:
		return []string{"The approvals are not read yet, so no tool can be called. If this persists, check the daemon's log."}
	}
}

// loginWarnings returns warnings about the servers that need a login.
func (g *Gateway) loginWarnings() (out []string) {
	for _, s := range g.Catalog.Current().Servers() {
		if g.Logins.NeedsLogin(s.Name) {
			out = append(out, "Server '"+s.Name+"' requires a login: mcpproxy login "+s.Name)
		}
	}
	return out
}

// restrictionsLost is the warning that earlier blocks may be lost.
const restrictionsLost = "Earlier blocks are lost, at least in part: review each tool before you approve."
