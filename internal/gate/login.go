package gate

import (
	"context"
	"errors"
	"slices"
	"time"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/gate/ask"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/upstream"
	"mcpproxy/internal/upstream/oauth"
)

// ServerLogins are the logins to servers. oauth.Accounts implements it.
type ServerLogins interface {
	Status(server string) oauth.LoginStatus
	NeedsLogin(server string) bool
	// InProgress reports whether the user is logging in.
	InProgress(server string) bool
	// RequestLogin asks the user to log in, if that is necessary.
	RequestLogin(server string)
	// AwaitLogin returns when the login works, or with an error.
	AwaitLogin(ctx context.Context, server string) error
}

// Limits of calls that wait for a login.
const (
	maxLoginWaits  = 1000 // calls at a time
	maxLoginRounds = 3    // waits of one call
)

// sendOrAwaitLogin sends a call. If the server rejects it because of its login, the call waits for the login without a
// slot, up to the time limit for approvals in total, and is sent again: a rejected request was not executed.
func (g *Gate) sendOrAwaitLogin(ctx context.Context, x *execution, to requestTarget) (session.Reply, error) {
	id, began := x.verdict.request.ID, time.Now()
	for round := 1; ; round++ {
		reply, err := g.send(ctx, x, to)
		if err == nil || ctx.Err() != nil || !isLoginFailure(err) {
			return reply, err
		}
		g.Logins.RequestLogin(id.Server)
		left := x.verdict.cfg.AskTimeout(id.Server) - time.Since(began)
		if round > maxLoginRounds || !g.awaitLogin(ctx, &x.call, id.Server, left, &x.time) {
			return reply, g.explainLoginFailure(id.Server, err)
		}
	}
}

// isLoginFailure reports whether a call failed because of the login to its server.
func isLoginFailure(err error) bool {
	p, ok := errors.AsType[*problem.Problem](err)
	return ok && (p.Code == problem.LoginNeeded || p.Detail("login") == string(oauth.LoginRetrying))
}

// awaitLogin waits until the login to a server works, at most for limit, and reports whether it does. It does not wait
// if the login needs the user, who has not started it, and the client has not requested progress: that client could
// only wait blindly.
func (g *Gate) awaitLogin(ctx context.Context, c *call, server string, limit time.Duration, t *stopwatch) bool {
	notify := c.newWaitNotifier("Waiting for the login to " + server + " (`mcpproxy login " + server + "`): ")
	switch status := g.Logins.Status(server); {
	case limit <= 0:
		return false
	case status.State == oauth.LoginNeeded && notify == nil && !g.Logins.InProgress(server):
		return false
	case g.loginWaits.Add(1) > maxLoginWaits:
		g.loginWaits.Add(-1)
		return false
	}
	defer g.loginWaits.Add(-1)
	began := time.Now()
	defer t.addWaitSince(began)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	works := make(chan error, 1)
	go func() { works <- g.Logins.AwaitLogin(ctx, server) }()
	tell := time.NewTicker(ask.NotifyInterval)
	defer tell.Stop()
	for {
		select {
		case err := <-works:
			return err == nil
		default:
		}
		if notify != nil {
			notify(time.Since(began))
		}
		select {
		case err := <-works:
			return err == nil
		case <-tell.C:
		}
	}
}

// explainLoginFailure adds the reason to the problem of a call that failed because of the login to its server.
func (g *Gate) explainLoginFailure(server string, err error) error {
	p, ok := errors.AsType[*problem.Problem](err)
	status := g.Logins.Status(server)
	if !ok || status.State != oauth.LoginNeeded {
		return err
	}
	explained := *p
	explained.Message += ". The reason: " + status.Reason + "."
	explained.Details = slices.Clone(p.Details)
	return explained.With("login", string(status.State))
}

// decideAfterLogin is like decide, for a tool of a server that has not listed its tools because it requires a login. It
// waits for the login and for the tools.
func (g *Gate) decideAfterLogin(ctx context.Context, c *call, v verdict, t *stopwatch) verdict {
	server := v.request.ID.Server
	g.Logins.RequestLogin(server)
	limit, began := v.cfg.AskTimeout(server), time.Now()
	if !g.awaitLogin(ctx, c, server, limit, t) {
		var p *problem.Problem
		if errors.As(g.explainLoginFailure(server, v.Problem), &p) {
			v.Problem = p
		}
		return v
	}
	listing := time.Now()
	defer t.addWaitSince(listing)
	late := time.NewTimer(limit - time.Since(began))
	defer late.Stop()
	for {
		now := g.Catalog.Current()
		v = g.decide(c, v.withSnapshot(g.Config(), now), now)
		if s := now.Server(server); v.Problem == nil || !isConnecting(s) {
			return v
		}
		select {
		case <-now.ReplacedChan():
		case <-late.C:
			return v
		case <-ctx.Done():
			return v
		}
	}
}

// isConnecting reports whether a server has not listed its tools yet, but is about to.
func isConnecting(s *catalog.Server) bool {
	return s != nil && !s.Listed && s.State.Phase == upstream.Connecting
}
