package compat

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/transport"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/upstream"
)

// exclusiveClientLink is a session of the server for one client alone. Over stdio it has its own process.
//
// Its tools may differ from those on MCPProxy's own connection, which calls are decided on. So after the server
// announces changed tools in this session, they are listed in it. Without an announcement nothing is stored.
type exclusiveClientLink struct {
	transport.Link
	sv        *upstream.Server
	announced atomic.Uint64 // number of tool changes in this session

	sem          chan struct{} // cap 1: held while listing, guards the fields below
	listedChange uint64        // the last change that the list includes
	listed       map[tool.Fingerprint]struct{}
}

func newExclusiveClientLink(sv *upstream.Server) *exclusiveClientLink {
	return &exclusiveClientLink{sv: sv, sem: make(chan struct{}, 1)}
}

// exclusiveClient records which messages the client of an exclusive session expects. Some clients disconnect, or never
// answer, when they get any other message.
type exclusiveClient struct {
	capabilities json.RawMessage // that it has declared

	mu     sync.Mutex     // guards tokens
	tokens map[string]int // progress tokens, by the number of requests with it
}

// maxTaskTokens limits the progress tokens of tasks, which are valid until the task ends.
const maxTaskTokens = 256

// beginRequest adds the progress token of a request. The caller calls end when the request has ended.
func (c *exclusiveClient) beginRequest(r *session.Request) (end func()) {
	token := string(transport.ProgressTokenOf(r.Params))
	if token == "" {
		return func() {}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tokens == nil {
		c.tokens = map[string]int{}
	}
	c.tokens[token]++
	if wirejson.Find(r.Params, "task") != nil && len(c.tokens) <= maxTaskTokens {
		return func() {}
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.tokens[token]--; c.tokens[token] == 0 {
			delete(c.tokens, token)
		}
	}
}

// expects reports whether the client expects a message. It does not expect progress for an unknown token, or a server
// request that it has not declared. It expects all other messages, even unknown ones.
func (c *exclusiveClient) expects(e *session.Event) bool {
	switch {
	case e.ID != nil:
		return mcp.QuestionCapability(e.Method) == "" || declaresQuestion(c.capabilities, e.Method)
	case e.Method == mcp.Progress:
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.tokens[string(wirejson.Find(e.Params, "progressToken"))] > 0
	}
	return true
}

// filterEvents returns a filter in front of say that drops messages the client does not expect. It refuses unexpected
// requests of the server.
func (s *Session) filterEvents(ctx context.Context, say func(session.Event)) func(session.Event) {
	if s.client == nil || say == nil {
		return say
	}
	return func(e session.Event) {
		switch {
		case s.client.expects(&e):
			say(e)
		case e.ID != nil:
			refused := e.Clone()
			s.rejectServerRequest(ctx, &refused)
		}
	}
}

// exclusiveLinkReporter receives the reports of a client's link. Changed tools may concern every client, but the health and the
// messages of the link concern only its own.
type exclusiveLinkReporter struct {
	transport.Reporter
	announced *atomic.Uint64
}

func (r exclusiveLinkReporter) ToolsChanged() {
	r.announced.Add(1)
	r.Reporter.ToolsChanged()
}

func (exclusiveLinkReporter) Notification(string, json.RawMessage) bool { return false }
func (exclusiveLinkReporter) NotificationsMissed()                      {}
func (exclusiveLinkReporter) ConnectionDoubtful()                       {}

// rejectCallOfChangedTool rejects a call of a tool that may have changed in this session since the
// decision. The lookup counts as a wait, so the decision is repeated.
func (l *exclusiveClientLink) rejectCallOfChangedTool(ctx context.Context, c *upstream.Connection, r *session.Request) error {
	if r.Permit.ListedDefinition() == nil || l.announced.Load() == 0 {
		return nil
	}
	if err := l.checkToolUnchanged(ctx, r); err != nil {
		return err
	}
	return l.sv.RecheckDecision(ctx, c, r)
}

func (l *exclusiveClientLink) checkToolUnchanged(ctx context.Context, r *session.Request) error {
	select {
	case l.sem <- struct{}{}:
	case <-ctx.Done():
		if session.IsTimedOut(ctx) {
			return upstream.ErrUnlisted
		}
		return ctx.Err()
	}
	defer func() { <-l.sem }()
	if announced := l.announced.Load(); l.listedChange < announced {
		listed, err := l.listToolFingerprints(ctx)
		if err != nil {
			return err
		}
		l.listedChange, l.listed = announced, listed
	}
	d, err := tool.ParseDefinition(l.sv.Spec.Name, bytes.Clone(r.Permit.ListedDefinition()))
	if err != nil {
		return l.sv.ToolChangedError(r)
	}
	if _, same := l.listed[d.Fingerprint()]; !same {
		return l.sv.ToolChangedError(r)
	}
	return nil
}

// listToolFingerprints lists the tools of this session.
func (l *exclusiveClientLink) listToolFingerprints(ctx context.Context) (map[tool.Fingerprint]struct{}, error) {
	var sent error
	tools, err := l.sv.ReadToolPages(ctx, l.Done(), func(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
		reply, err := l.Do(ctx, &session.Request{ID: l.sv.NextID(), Method: mcp.ListTools, Params: params})
		if sent = err; err == nil && reply.Error != nil {
			err = reply.Error
		}
		return reply.Result, err
	})
	switch {
	case l.Cause() != nil:
		return nil, l.sv.SessionEndedError(l.Cause())
	case sent != nil && ctx.Err() != nil && !session.IsTimedOut(ctx):
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
