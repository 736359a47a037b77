package gateway

import (
	"context"

	"mcpproxy/internal/session"
)

// RelayRequest is a client's request to one server, as these tests write it.
type RelayRequest struct {
	Server       string
	Conversation session.Session
	Request      session.Request
	Caller       Caller
	RequestBytes int
}

// Passed is r as a Surface takes it.
func (r *RelayRequest) Passed() *session.Request {
	q := r.Request
	q.Caller, q.Size = &r.Caller, r.RequestBytes
	return &q
}

// AllRequest is the same for the surface of all servers.
type AllRequest struct {
	RelayRequest
	Talk func(ctx context.Context, server string) (session.Session, error)
}

func (g *Gateway) Converse(ctx context.Context, r RelayRequest) (session.Session, session.Reply, error) {
	return g.Surface(r.Server).Open(ctx, r.Passed())
}

func (g *Gateway) Relay(ctx context.Context, r RelayRequest) (session.Reply, error) {
	var to session.Doer = r.Conversation
	if r.Conversation == nil {
		to = g.Surface(r.Server)
	}
	return to.Do(ctx, r.Passed())
}

func (g *Gateway) RelayAll(ctx context.Context, r AllRequest) (session.Reply, error) {
	return g.DoAll(ctx, r.Passed(), r.Talk)
}
