// Package union is the surface of all servers at once: their tools, prompts and
// resources under names that say whose they are, as one session.Surface.
//
// It guarantees that what is about one server gets to that server as it gets
// there by its own surface, in a session of the client's own that the first
// request opens, that the end of one server's session is not that of the
// client's, and that a client is told of a change of a list that it has seen. It
// decides nothing and calls no tool: that is the gateway's. It knows no
// transport.
package union

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"

	"mcpproxy/internal/gateway"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/rawjson"
	"mcpproxy/internal/reply"
	"mcpproxy/internal/session"
)

// Gateway is what the surface needs of the product.
type Gateway interface {
	// Surface returns one server's.
	Surface(server string) session.Surface
	// DoAll passes a request on to the server that its name stands for; open
	// returns the client's session with that server, and is nil for requests
	// that stand for themselves.
	DoAll(ctx context.Context, r *session.Request, open func(ctx context.Context, server string) (session.Session, error)) (session.Reply, error)
	ListAll(ctx context.Context, o gateway.Offer, cursor string, c gateway.Caller) (gateway.Page, error)
	OfferingOf(c gateway.Caller) gateway.Offering
	ListedNow(c gateway.Caller) (gateway.Listed, <-chan struct{})
	Refused(ctx context.Context, server string, r *session.Request, p *problem.Problem)
}

// Surface is a session.Surface.
type Surface struct {
	gateway Gateway
	reply   *reply.Writer
}

// New makes a Surface.
func New(g Gateway, w *reply.Writer) *Surface { return &Surface{g, w} }

// instructions is what a client may tell its model about this surface.
const instructions = "These are the tools, prompts and resources of many MCP servers, through MCPProxy. " +
	"A tool or prompt is named server__name, and does what that server says it does; its annotations are those that its user lets count."

// Form returns how requests of a method are answered: what is about one server
// as that server answers it.
func (s *Surface) Form(method string) session.Form {
	if method == mcp.Listen || forOneServer(method) {
		return session.Waiting
	}
	return session.AtOnce
}

// forOneServer reports whether requests of a method are about something of one
// server.
func forOneServer(method string) bool {
	switch method {
	case mcp.CallTool, mcp.GetPrompt, mcp.ReadResource, mcp.Complete:
		return true
	}
	return false
}

// Refused puts a call on record that was refused before it got here.
func (s *Surface) Refused(ctx context.Context, r *session.Request, p *problem.Problem) {
	s.gateway.Refused(ctx, "", r, p)
}

// Do answers a modern request.
func (s *Surface) Do(ctx context.Context, r *session.Request) (session.Reply, error) {
	offer, list, lists := gateway.OfferOf(r.Method)
	switch {
	case forOneServer(r.Method):
		return s.pass(ctx, r, true, nil), nil
	case lists:
		return s.list(ctx, r, true, offer, list, nil), nil
	case r.Method == mcp.Discover:
		return s.discover(r), nil
	case r.Method == mcp.Listen:
		return s.listen(ctx, r), nil
	}
	return reply.MethodNotFound(r.Method), nil
}

// pass passes a request on to the server that it is for.
func (s *Surface) pass(ctx context.Context, r *session.Request, modern bool, open func(context.Context, string) (session.Session, error)) session.Reply {
	q := *r
	q.Head = nil // what one server says in it is not said for all
	a, err := s.gateway.DoAll(ctx, &q, open)
	if err != nil {
		return s.reply.Problem(modern, r.Method, err)
	}
	if !modern && a.Error != nil && a.Status == http.StatusNotFound {
		a.Status = 0 // it is that of one server; a client takes it for the end of its session
	}
	return a
}

// list answers with a page of a list. h, if there is one, notes that the client
// gets it.
func (s *Surface) list(ctx context.Context, r *session.Request, modern bool, offer gateway.Offer, list string, h *heard) session.Reply {
	cursor := ""
	if c := rawjson.Find(r.Params, "cursor"); c != nil && rawjson.Kind(c) != 'n' {
		var ok bool
		if cursor, ok = rawjson.String(c); !ok {
			return session.Reply{Error: reply.InvalidParams("params.cursor must be a string")}
		}
	}
	if cursor == "" && h != nil {
		now, _ := s.gateway.ListedNow(*r.Caller) // first: what changes meanwhile is announced
		h.listed(offer, now)
	}
	p, err := s.gateway.ListAll(ctx, offer, cursor, *r.Caller)
	if err != nil {
		return s.reply.Problem(modern, r.Method, err)
	}
	out := append(rawjson.AppendString(bytes.Clone(s.reply.Front(modern)), []byte(list)), ":["...)
	for i, item := range p.Items {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, item...)
	}
	out = append(out, ']')
	if p.Next != "" {
		out = rawjson.AppendString(append(out, `,"nextCursor":`...), []byte(p.Next))
	}
	if modern {
		out = append(out, caching...)
	}
	return session.Reply{Result: append(out, '}')}
}

// caching is said of what may change at any time, and differ between clients.
const caching = `,"ttlMs":0,"cacheScope":"private"`

func (s *Surface) discover(r *session.Request) session.Reply {
	return session.Reply{Result: json.RawMessage(string(s.reply.Front(true)) + `"supportedVersions":` + mcp.Served + `,"capabilities":` +
		s.capabilities(r) + `,"instructions":"` + instructions + `"` + caching + `}`)}
}

// capabilities is what the servers can do together, as far as it is passed on.
func (s *Surface) capabilities(r *session.Request) string {
	o := s.gateway.OfferingOf(*r.Caller)
	out := `{"tools":{"listChanged":true}`
	for _, c := range []struct {
		has  bool
		says string
	}{
		{o.Prompts, `,"prompts":{"listChanged":true}`},
		{o.Resources, `,"resources":{"listChanged":true}`},
		{o.Completions, `,"completions":{}`},
		{o.Logging, `,"logging":{}`},
	} {
		if c.has {
			out += c.says
		}
	}
	return out + "}"
}
