package compat

import (
	"bytes"
	"context"
	"encoding/json"
	"sync/atomic"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/transport"
	"mcpproxy/internal/upstream"
)

// ownLink is a session of the server that one client has for itself, over stdio
// a process.
//
// Such a session may have other tools than our own connection, by which calls are
// judged. So they are listed in it once the server has announced in it that they
// have changed. Nothing is kept of a session in which nothing was announced.
type ownLink struct {
	transport.Link
	sv        *upstream.Server
	announced atomic.Uint64 // changes of the tools, in this session

	turn   chan struct{} // cap 1: held by who lists, or reads what follows
	upTo   uint64        // the last change that is on the list
	listed map[tool.Fingerprint]struct{}
}

func newOwnLink(sv *upstream.Server) *ownLink { return &ownLink{sv: sv, turn: make(chan struct{}, 1)} }

// reports are what the link of one client tells the server: the tools may have
// changed for everybody, but the health of the link is its client's affair, and
// what is said on it is for that client.
type reports struct {
	transport.Reports
	announced *atomic.Uint64
}

func (r reports) ToolsChanged() {
	r.announced.Add(1)
	r.Reports.ToolsChanged()
}

func (reports) Heard(string, json.RawMessage) bool { return false }
func (reports) Missed()                            {}
func (reports) Doubt()                             {}

// admit refuses a call that may not be sent here: when the tool is another one
// than the caller has judged, as far as the server has announced that it may be.
// Where that is looked up the call has waited; so it is decided about once more.
func (l *ownLink) admit(ctx context.Context, c *upstream.Connection, r *session.Request) error {
	if r.Permit.Listed() == nil || l.announced.Load() == 0 {
		return nil
	}
	if err := l.same(ctx, r); err != nil {
		return err
	}
	return l.sv.Recheck(ctx, c, r)
}

func (l *ownLink) same(ctx context.Context, r *session.Request) error {
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		if session.TimedOut(ctx) {
			return upstream.ErrUnlisted
		}
		return ctx.Err()
	}
	defer func() { <-l.turn }()
	if announced := l.announced.Load(); l.upTo < announced {
		listed, err := l.list(ctx)
		if err != nil {
			return err
		}
		l.upTo, l.listed = announced, listed
	}
	d, err := tool.ParseDefinition(l.sv.Spec.Name, bytes.Clone(r.Permit.Listed()))
	if err != nil {
		return l.sv.Changed(r)
	}
	if _, same := l.listed[d.Fingerprint()]; !same {
		return l.sv.Changed(r)
	}
	return nil
}

// list has the server list the tools of this session.
func (l *ownLink) list(ctx context.Context) (map[tool.Fingerprint]struct{}, error) {
	var sent error
	tools, err := l.sv.ReadTools(ctx, l.Done(), func(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
		reply, err := l.Do(ctx, &session.Request{ID: l.sv.NextID(), Method: mcp.ListTools, Params: params})
		if sent = err; err == nil && reply.Error != nil {
			err = reply.Error
		}
		return reply.Result, err
	})
	switch {
	case l.Cause() != nil:
		return nil, l.sv.Over(l.Cause())
	case sent != nil && ctx.Err() != nil && !session.TimedOut(ctx):
		return nil, sent
	case err != nil:
		return nil, upstream.ErrUnlisted
	}
	listed := make(map[tool.Fingerprint]struct{}, len(tools))
	for _, d := range tools {
		listed[d.Fingerprint()] = struct{}{}
	}
	return listed, nil
}
