package upstream

import (
	"context"
	"net/http"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/session"
)

// Surface returns what clients can talk to of one server: requests of the modern
// revision, calls in parts, and sessions. A tools/call is refused unless it comes
// with the proof that it was decided about.
func (s *Set) Surface(server string) session.Surface { return surface{s, server} }

type surface struct {
	set    *Set
	server string
}

func (f surface) Do(ctx context.Context, r *session.Request) (session.Reply, error) {
	return f.set.do(ctx, f.server, nil, r)
}

func (s *Set) do(ctx context.Context, server string, c *Conversation, r *session.Request) (session.Reply, error) {
	if r.Method == mcp.CallTool || r.Call != nil {
		return s.call(ctx, server, c, r)
	}
	return s.relay(ctx, server, c, r)
}

func (f surface) Open(ctx context.Context, initialize *session.Request) (session.Session, session.Reply, error) {
	c, reply, err := f.set.converse(ctx, f.server, initialize)
	if c == nil {
		return nil, reply, err
	}
	return clientSession{f, c}, reply, err
}

// clientSession is a Conversation as a session.Session.
type clientSession struct {
	surface
	*Conversation
}

func (s clientSession) Do(ctx context.Context, r *session.Request) (session.Reply, error) {
	reply, err := s.set.do(ctx, s.surface.server, s.Conversation, r)
	if reply.Status == http.StatusNotFound && !s.HasID() {
		reply.Status = 0 // it would say that the client's session is over
	}
	return reply, err
}

func (s clientSession) Listen(ctx context.Context, say func(session.Event), opened func()) error {
	return s.Overhear(ctx, say, opened)
}

func (s clientSession) Close()                { s.End() }
func (s clientSession) Done() <-chan struct{} { return s.Over() }
