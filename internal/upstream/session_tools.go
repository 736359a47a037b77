package upstream

import (
	"bytes"
	"cmp"
	"context"
	"sync/atomic"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/session"
	"mcpproxy/internal/tool"
)

// sessionTools are the tools of a session that a client has for itself, if its
// server has announced in it that they have changed: a session, above all one
// that is a process of its own, may have other tools than the connection that
// calls are judged by. Nothing is kept of a session in which nothing was
// announced.
type sessionTools struct {
	announced atomic.Uint64 // changes

	turn   chan struct{} // cap 1: held by who lists, or reads what follows
	upTo   uint64        // the last change that is on the list
	listed map[tool.Fingerprint]struct{}
}

// sameInSession refuses a call to a client's own session when the tool is there
// another one than the caller has judged, as far as the server has announced
// that it may be.
func (s *Set) sameInSession(ctx context.Context, sv *server, own *Conversation, r *session.Request) error {
	if own == nil || r.Judged.Listed() == nil || own.tools.announced.Load() == 0 {
		return nil
	}
	t := &own.tools
	select {
	case t.turn <- struct{}{}:
	case <-ctx.Done():
		if session.TimeIsUp(ctx) {
			return errUnlisted
		}
		return ctx.Err()
	}
	defer func() { <-t.turn }()
	if announced := t.announced.Load(); t.upTo < announced {
		listed, err := s.listInSession(ctx, sv, own)
		if err != nil {
			return err
		}
		t.upTo, t.listed = announced, listed
	}
	d, err := tool.ParseDefinition(sv.spec.Name, bytes.Clone(r.Judged.Listed()))
	if err != nil {
		return sv.changedTool(r)
	}
	if _, same := t.listed[d.Fingerprint()]; !same {
		return sv.changedTool(r)
	}
	return nil
}

// listInSession has the server list the tools of a client's own session.
func (s *Set) listInSession(ctx context.Context, sv *server, own *Conversation) (map[tool.Fingerprint]struct{}, error) {
	var (
		list   toolList
		params []byte
	)
	for range maxPages {
		reply, err := own.pass(ctx, &session.Request{ID: s.nextID(), Method: mcp.ListTools, Params: params})
		switch {
		case own.link.Cause() != nil:
			return nil, cmp.Or(err, error(sv.over(own)))
		case err != nil && ctx.Err() != nil && !session.TimeIsUp(ctx):
			return nil, err
		case err != nil, reply.Error != nil:
			return nil, errUnlisted
		}
		cursor, err := list.add(reply.Result, s.opt.MaxMessage)
		if err != nil {
			return nil, errUnlisted
		}
		if cursor == nil {
			listed := make(map[tool.Fingerprint]struct{}, len(list.tools))
			for _, d := range sv.definitions(list.tools) {
				listed[d.Fingerprint()] = struct{}{}
			}
			return listed, nil
		}
		params = append(append([]byte(`{"cursor":`), cursor...), '}')
	}
	return nil, errUnlisted
}
