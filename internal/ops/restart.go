package ops

import (
	"context"
	"time"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/upstream"
)

// restartTimeout limits how long RestartServer waits for the new connection.
const restartTimeout = 10 * time.Second

// RestartServer reconnects a server. It returns when the server is ready or has failed, or after restartTimeout. The
// returned state shows the outcome. A user's restart is immediate and ends running calls. An agent's restart ends no
// call of other clients, and is rejected shortly after another restart (see upstream.Set.RestartWhenDrained). Both are
// recorded before they happen. The surface records rejections.
func (g *Gateway) RestartServer(ctx context.Context, c Caller, in ServerRef) (ServerView, error) {
	name := in.Name
	begin := func() error { return g.recordActionOnServer(c, name, "restart") }
	asked, err := time.Now(), g.checkRestartAllowed(name, c)
	switch {
	case err != nil:
	case c.IsUser():
		if err = begin(); err == nil {
			err = g.Upstreams.Restart(name)
		}
	default:
		err = g.Upstreams.RestartWhenDrained(ctx, name, func() error {
			asked = time.Now()
			return begin()
		})
		if err != nil && ctx.Err() != nil {
			err = problem.Newf(problem.Interrupted, "The restart of '%s' was cancelled by its caller.", name).Because(err)
		}
	}
	if err == nil {
		err = g.waitForServer(ctx, name, asked)
	}
	if err != nil {
		return ServerView{}, err
	}
	return g.Server(ctx, c, in)
}

// checkRestartAllowed returns an error if a server cannot be restarted.
func (g *Gateway) checkRestartAllowed(name string, c Caller) error {
	s, err := g.findServerInScope(&c, name)
	if err != nil && problem.From(err).Code == problem.OutOfScope {
		return err
	}
	if !policy.ScopeIncludes(c.Scope(), policy.Write) {
		return problem.Newf(problem.OutOfScope, "This client is not allowed to restart servers: it needs access to the write lane").
			WithHint("Only the user can extend the scope of an agent token.")
	}
	if _, proposed := g.Book.FindProposal(name); err != nil && proposed && g.Config().Server(name) == nil {
		return onlyProposedError(name)
	}
	if err != nil {
		return err
	}
	if wanted := g.Config().Server(name); wanted == nil ||
		!catalog.MayStartServer(*wanted, g.Book.ServerView(name)) || s.Quarantined && !c.IsUser() {
		return problem.Newf(problem.ServerUnavailable, "Server '%s' is not running: it is disabled or quarantined.", name).
			WithHint("Enable it with `mcpproxy upstream enable " + name + "`, or review it with `mcpproxy upstream approve " + name + "`.")
	}
	return nil
}

// waitForServer waits until the server is in a final state that it entered after the given time.
func (g *Gateway) waitForServer(ctx context.Context, name string, after time.Time) error {
	limit := time.NewTimer(restartTimeout)
	defer limit.Stop()
	for {
		snapshot := g.Catalog.Current()
		s := snapshot.Server(name)
		if s == nil || s.State.Since.After(after) && s.State.Phase != upstream.Connecting {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-limit.C:
			return nil
		case <-snapshot.ReplacedChan():
		}
	}
}
