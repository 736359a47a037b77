package ops

import (
	"context"
	"time"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/upstream"
)

// restartTime is how long RestartServer waits for the new connection.
const restartTime = 10 * time.Second

// RestartServer ends a server's connection and makes a new one. It returns
// when that is ready or has failed, at the latest after restartTime; how it
// went is in the server's state. A person's restart happens at once and ends
// what is in flight; an agent's ends no call of others, and is refused when the
// server was restarted a moment ago: see upstream.Set.RestartQuietly. Either is
// on record before it happens; what is refused the surface records.
func (g *Gateway) RestartServer(ctx context.Context, c Caller, in ServerRef) (ServerView, error) {
	name := in.Name
	begin := func() error { return g.record(c, name, "restart") }
	asked, err := time.Now(), g.mayRestart(name, c)
	switch {
	case err != nil:
	case c.Person():
		if err = begin(); err == nil {
			err = g.Upstreams.Restart(name)
		}
	default:
		err = g.Upstreams.RestartQuietly(ctx, name, func() error {
			asked = time.Now()
			return begin()
		})
		if err != nil && ctx.Err() != nil {
			err = problem.Newf(problem.Interrupted, "The restart of '%s' was cancelled by its caller.", name).Because(err)
		}
	}
	if err == nil {
		err = g.awaitServer(ctx, name, asked)
	}
	if err != nil {
		return ServerView{}, err
	}
	return g.Server(ctx, c, in)
}

// mayRestart returns why a server cannot be restarted, nil when it can.
func (g *Gateway) mayRestart(name string, c Caller) error {
	s, err := g.findFor(&c, name)
	if err != nil && problem.From(err).Code == problem.OutOfScope {
		return err
	}
	if !policy.Within(c.Scope(), policy.Write) {
		return problem.Newf(problem.OutOfScope, "To restart a server is outside what this client may do: it needs the write lane").
			WithHint("Only the user can widen the scope of an agent token.")
	}
	if _, proposed := g.Book.Proposal(name); err != nil && proposed && g.Config().Server(name) == nil {
		return onlyProposed(name)
	}
	if err != nil {
		return err
	}
	if wanted := g.Config().Server(name); wanted == nil ||
		!catalog.MayStart(*wanted, g.Book.View(name)) || s.Quarantined && !c.Person() {
		return problem.Newf(problem.ServerUnavailable, "Server '%s' is not running: it is disabled or quarantined.", name).
			WithHint("Enable it with `mcpproxy upstream enable " + name + "`, or review it with `mcpproxy upstream approve " + name + "`.")
	}
	return nil
}

// awaitServer waits until the server is in a state that it entered after the
// time given and that is not a step on the way.
func (g *Gateway) awaitServer(ctx context.Context, name string, after time.Time) error {
	limit := time.NewTimer(restartTime)
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
		case <-snapshot.Replaced():
		}
	}
}
