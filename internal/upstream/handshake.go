package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/transport"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
)

// handshaker detects the protocol of a server and initializes connections. The result is
// kept until a connection fails.
type handshaker struct {
	*serverBase
	protocolEra atomic.Uint32
	sse         atomic.Bool // it speaks only the SSE transport
	asks        bool        // MCPProxy declares the capabilities for questions; used by supervise only
}

// The detected protocol.
const (
	eraUnknown = iota
	eraLegacy
	eraModern
)

// probeTimeout is how long a server may take to answer server/discover. Legacy servers
// may not answer at all.
const probeTimeout = 5 * time.Second

// errExitedOnProbe means that the process exits when it receives an unknown method.
var errExitedOnProbe = problem.TrustedTextErrorf("the server exited when it was asked for its protocol version")

// UsesSSE reports whether the server is configured for the SSE transport or was detected to use it.
func (h *handshaker) UsesSSE() bool { return h.Spec.Transport == SSE || h.sse.Load() }

// rejectsStreamableHTTP reports whether a server rejects streamable HTTP in the way of one that
// only supports SSE.
func (h *handshaker) rejectsStreamableHTTP(err error) bool {
	var status *transport.StatusError
	if !h.Spec.TrySSE || h.UsesSSE() || !errors.As(err, &status) {
		return false
	}
	switch status.Status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed:
		return true
	}
	return false
}

// openConnection opens a link, connects and lists the tools. announced counts tool changes.
func (h *handshaker) openConnection(ctx context.Context, open func() (transport.Link, error), announced *atomic.Uint64) (*Connection, []*tool.Definition, error) {
	c, tools, err := h.openConnectionOnce(ctx, open, announced)
	if errors.Is(err, errExitedOnProbe) { // again, without the probe
		c, tools, err = h.openConnectionOnce(ctx, open, announced)
	}
	if h.rejectsStreamableHTTP(err) {
		h.sse.Store(true)
		if c, tools, again := h.openConnectionOnce(ctx, open, announced); again == nil {
			return c, tools, nil
		}
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		} // otherwise the first error is returned
	}
	if err != nil {
		h.sse.Store(false) // the server may have been replaced
	}
	return c, tools, err
}

// openConnectionOnce opens a connection over one link. On failure it stops the link.
func (h *handshaker) openConnectionOnce(ctx context.Context, open func() (transport.Link, error), announced *atomic.Uint64) (*Connection, []*tool.Definition, error) {
	h.deviations.clear()
	l, err := open()
	if err != nil {
		return nil, nil, err
	}
	c := &Connection{link: l}
	var tools []*tool.Definition
	if c.handshakeResult, err = h.negotiateProtocol(ctx, l); err == nil {
		c.listedChange.Store(announced.Load())
		tools, err = h.listTools(ctx, c)
	}
	if err == nil {
		l.MarkStartComplete()
		return c, tools, nil
	}
	cause := l.Cause()
	switch {
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case cause != nil && !errors.Is(err, errExitedOnProbe) && !h.rejectsStreamableHTTP(err):
		err = cause
	}
	l.Stop(h.stopNow)
	return nil, nil, err
}

// negotiateProtocol detects the protocol and does its handshake.
func (h *handshaker) negotiateProtocol(ctx context.Context, l transport.Link) (*HandshakeResult, error) {
	era := h.protocolEra.Swap(eraUnknown)
	if h.UsesSSE() {
		era = eraLegacy // the modern protocol has no SSE transport
	}
	silent := false
	if era != eraLegacy {
		pctx, cancel := context.WithTimeout(ctx, min(probeTimeout, h.Spec.ConnectTimeLimit()/2))
		g, err := h.sendDiscover(pctx, l)
		cancel()
		switch {
		case err == nil:
			h.protocolEra.Store(eraModern)
			return g, nil
		case l.Cause() != nil && l.Health().PID != 0:
			h.protocolEra.Store(eraLegacy)
			return nil, errExitedOnProbe
		case ctx.Err() != nil:
			return nil, err
		}
		silent = errors.Is(err, context.DeadlineExceeded)
	}
	g, err := h.doLegacyHandshake(ctx, l)
	var refused *transport.ServerRPCError
	if silent && errors.As(err, &refused) {
		// The server was only slow to start, and would reject a second initialize.
		if g, again := h.sendDiscover(ctx, l); again == nil {
			h.protocolEra.Store(eraModern)
			return g, nil
		}
	}
	if err == nil {
		h.protocolEra.Store(eraLegacy)
	}
	return g, err
}

// sendDiscover sends server/discover (modern protocol).
func (h *handshaker) sendDiscover(ctx context.Context, l transport.Link) (*HandshakeResult, error) {
	reply, err := l.Do(ctx, &session.Request{Method: mcp.Discover})
	if err == nil && errorOffersModern(reply.Error) {
		reply, err = l.Do(ctx, &session.Request{Method: mcp.Discover})
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", mcp.Discover, err)
	}
	if reply.Error != nil {
		return nil, &transport.ServerRPCError{Code: reply.Error.Code}
	}
	g, err := parseDiscoverResult(reply.Result)
	if err == nil {
		l.SetVersion(mcp.Modern)
	}
	return g, err
}

// errorOffersModern reports whether a server that rejects a protocol version lists the modern
// one as supported. Then no legacy handshake is tried.
func errorOffersModern(e *wirejson.RPCError) bool {
	return e != nil && e.Code == mcp.CodeUnsupportedVersion && includesModern(wirejson.Find(e.Data, "supported"))
}

// doLegacyHandshake does the legacy handshake.
func (h *handshaker) doLegacyHandshake(ctx context.Context, l transport.Link) (*HandshakeResult, error) {
	declared := h.declaredCapabilities(h.asks)
	params := fmt.Appendf(nil, `{"protocolVersion":%q,"capabilities":%s,"clientInfo":{"name":"mcpproxy","version":%s}}`,
		mcp.Legacy, declared, wirejson.AppendString(nil, h.ClientVersion))
	reply, err := SendInitialize(ctx, l, &session.Request{Method: mcp.Initialize, Params: params})
	if err == nil && reply.Error != nil {
		err = h.ownRequestError(mcp.Initialize, reply.Error)
	}
	if err != nil {
		return nil, fmt.Errorf("initialize: %w", err)
	}
	g, err := parseInitializeResult(reply.Result)
	if err != nil {
		return nil, fmt.Errorf("initialize: %w", err)
	}
	g.declared = declared
	l.SetVersion(g.Version)
	nctx, cancel := context.WithTimeout(ctx, min(probeTimeout, h.Spec.ConnectTimeLimit()/2))
	err = l.NotifyServer(nctx, mcp.Initialized, nil)
	cancel()
	switch {
	case err == nil:
	case ctx.Err() != nil || l.Cause() != nil:
		return nil, fmt.Errorf("send the end of the handshake: %w", err)
	default: // some servers reject notifications, or do not answer them
		h.log.WriteRemark("notifications/initialized: " + err.Error())
	}
	l.OpenNotificationStream(ctx)
	return g, nil
}

// SendInitialize sends initialize. If the server rejects the protocol version and names another one that it supports,
// it sends initialize again with that version.
func SendInitialize(ctx context.Context, to session.Doer, r *session.Request) (session.Reply, error) {
	reply, err := to.Do(ctx, r)
	if err != nil || reply.Error == nil {
		return reply, err
	}
	requested, _ := wirejson.String(wirejson.Find(r.Params, "protocolVersion"))
	older := mcp.OlderVersionIn(reply.Error.Message+" "+string(reply.Error.Data), requested)
	if older == "" {
		return reply, nil
	}
	again := *r
	again.Params = wirejson.SetMember(r.Params, "protocolVersion", wirejson.AppendString(nil, older))
	return to.Do(ctx, &again)
}

// SendOwnRequest sends a request of MCPProxy itself and returns its result.
func (h *handshaker) SendOwnRequest(ctx context.Context, to session.Doer, method string, params json.RawMessage) (json.RawMessage, error) {
	reply, err := to.Do(ctx, &session.Request{Method: method, Params: params})
	if err != nil {
		return nil, err
	}
	if reply.Error != nil {
		return nil, h.ownRequestError(method, reply.Error)
	}
	return reply.Result, nil
}

// ownRequestError logs the server's error to a request of MCPProxy, and returns an error without the server's text.
func (h *handshaker) ownRequestError(method string, e *wirejson.RPCError) error {
	h.log.WriteRemark(fmt.Sprintf("error %d to %s: %s", e.Code, method, e.Message))
	return &transport.ServerRPCError{Code: e.Code}
}

// undeclaredListTimeout is how long a server that does not declare the tools capability may take to list tools. If it
// has none, it may not answer at all.
const undeclaredListTimeout = 2 * time.Second

// listUndeclaredTools returns the tools of a server that does not declare the tools
// capability.
func (h *handshaker) listUndeclaredTools(ctx context.Context, c *Connection) []*tool.Definition {
	ctx, cancel := context.WithTimeout(ctx, undeclaredListTimeout)
	defer cancel()
	tools, err := h.ReadToolPages(ctx, c.link.Done(), func(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
		reply, err := c.Do(ctx, &session.Request{Method: mcp.ListTools, Params: params})
		if err == nil && reply.Error != nil {
			err = &transport.ServerRPCError{Code: reply.Error.Code}
		}
		return reply.Result, err
	})
	if err != nil || len(tools) == 0 {
		return nil
	}
	h.addDeviation("it lists tools, but does not declare the capability tools")
	return tools
}

// listTools returns the tools that the server lists to MCPProxy.
func (h *handshaker) listTools(ctx context.Context, c *Connection) ([]*tool.Definition, error) {
	if !c.handshakeResult.hasTools {
		return h.listUndeclaredTools(ctx, c), nil
	}
	return h.ReadToolPages(ctx, c.link.Done(), func(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
		return h.SendOwnRequest(ctx, c, mcp.ListTools, params)
	})
}
