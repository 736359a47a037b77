package upstream

import (
	"context"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/session"
	"mcpproxy/internal/wire"
)

// relay passes on a request of a client that is anything but a call of a tool.
// c is the client's own session; nil is for clients whose requests stand for
// themselves. Its errors are problems, ErrOver, or ctx.Err().
func (s *Set) relay(ctx context.Context, server string, c *Conversation, r *session.Request) (session.Reply, error) {
	sv := s.await(ctx, server)
	if sv == nil {
		return session.Reply{}, notStarted(server)
	}
	if r.Method != mcp.Ping || c.sharer() == nil { // that one does not go to the server
		sv.enter()
		defer sv.leave()
	}
	if r.Method == mcp.Listen {
		sv.listening.Add(1)
		defer sv.listening.Add(-1)
	}
	if c != nil {
		reply, err := c.pass(ctx, r)
		return reply, sv.explainPassed(ctx, c, r, err)
	}
	live, err := sv.ready(ctx)
	if err != nil {
		return session.Reply{}, sv.explain(ctx, r, err, false)
	}
	reply, err := s.standing(ctx, sv, live, r)
	return reply, sv.explainPassed(ctx, nil, r, err)
}

// passCall sends a call of a tool, whose definition is still the one that was
// judged, in the client's own session, or as a request that stands for itself.
func (s *Set) passCall(ctx context.Context, sv *server, live *liveLink, c *Conversation, r *session.Request) (session.Reply, error) {
	var (
		reply session.Reply
		err   error
	)
	if c == nil {
		reply, err = s.standing(ctx, sv, live, r)
	} else if err = s.sameInSession(ctx, sv, c, r); err == nil {
		reply, err = c.pass(ctx, r)
	}
	return reply, sv.explainPassed(ctx, c, r, err)
}

// standing sends a request that stands for itself.
func (s *Set) standing(ctx context.Context, sv *server, live *liveLink, r *session.Request) (session.Reply, error) {
	if err := sound(r); err != nil {
		return session.Reply{}, err
	}
	if !live.modern() {
		return s.relayNewer(ctx, sv, live, r)
	}
	defer live.listens(r.Method)()
	return live.link.Do(ctx, r)
}

// pass sends a request in a client's own session.
func (c *Conversation) pass(ctx context.Context, r *session.Request) (session.Reply, error) {
	if err := sound(r); err != nil {
		return session.Reply{}, err
	}
	c.enter()
	defer c.leave()
	return c.link.Do(ctx, r)
}

// sound refuses a request with header lines that HTTP does not allow.
func sound(r *session.Request) error {
	if err := wire.CheckFields(r.Fields); err != nil {
		return problem.New(problem.InvalidRequest, "The request cannot be passed on: "+err.Error(), "")
	}
	return nil
}

// pastTheDoor refuses a call of a tool that comes without the proof that it was
// decided about. A notification is one, too: some servers act on it.
func pastTheDoor() *problem.Problem {
	return problem.New(problem.InvalidRequest, "tools/call must be a request of its own", "Send it with an id.")
}

// explainPassed makes the error of a request that was passed on.
func (s *server) explainPassed(ctx context.Context, c *Conversation, r *session.Request, err error) error {
	if err == nil {
		return nil
	}
	if p, ok := err.(*problem.Problem); ok {
		return p
	}
	if c != nil && c.link.Cause() != nil && ctx.Err() == nil {
		return s.over(c)
	}
	return s.explain(ctx, r, err, false)
}
