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

// handshake finds out what a server speaks and introduces us. What was found is
// remembered until a connection fails.
type handshake struct {
	*base
	era atomic.Uint32
	sse atomic.Bool // it speaks the older transport alone
}

// What a server was found to speak.
const (
	eraUnknown = iota
	eraLegacy
	eraModern
)

// probeTime is how long a server may take to tell that it is a modern one.
// Legacy ones may say nothing at all.
const probeTime = 5 * time.Second

// errShy is a process that ends when it is asked what it does not know.
var errShy = problem.Ownf("the server ended itself when it was asked for its revision")

// OverSSE reports whether the server is reached over the older transport, as far
// as is known.
func (h *handshake) OverSSE() bool { return h.Spec.Transport == SSE || h.sse.Load() }

// refusesHTTP reports whether a server that is asked over streamable HTTP refuses
// that in the way of one which knows the older transport alone.
func (h *handshake) refusesHTTP(err error) bool {
	var status *transport.StatusError
	if !h.Spec.TrySSE || h.OverSSE() || !errors.As(err, &status) {
		return false
	}
	switch status.Status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed:
		return true
	}
	return false
}

// connect makes a connection over a link of open, and lists the tools. announced
// counts the changes of these.
func (h *handshake) connect(ctx context.Context, open func() (transport.Link, error), announced *atomic.Uint64) (*Connection, []*tool.Definition, error) {
	c, tools, err := h.introduce(ctx, open, announced)
	if errors.Is(err, errShy) { // again, without asking
		c, tools, err = h.introduce(ctx, open, announced)
	}
	if h.refusesHTTP(err) {
		h.sse.Store(true)
		if c, tools, again := h.introduce(ctx, open, announced); again == nil {
			return c, tools, nil
		}
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		} // else it stays with what it said first
	}
	if err != nil {
		h.sse.Store(false) // it may have become another one
	}
	return c, tools, err
}

// introduce makes a connection over one link. When that fails the link is stopped.
func (h *handshake) introduce(ctx context.Context, open func() (transport.Link, error), announced *atomic.Uint64) (*Connection, []*tool.Definition, error) {
	h.oddities.forget()
	l, err := open()
	if err != nil {
		return nil, nil, err
	}
	c := &Connection{link: l}
	var tools []*tool.Definition
	if c.greeting, err = h.greet(ctx, l); err == nil {
		c.upTo.Store(announced.Load())
		tools, err = h.listTools(ctx, c)
	}
	if err == nil {
		l.Settled()
		return c, tools, nil
	}
	cause := l.Cause()
	switch {
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case cause != nil && !errors.Is(err, errShy) && !h.refusesHTTP(err):
		err = cause
	}
	l.Stop(h.hard)
	return nil, nil, err
}

// greet finds out what the server speaks and does the handshake of it.
func (h *handshake) greet(ctx context.Context, l transport.Link) (*Greeting, error) {
	era := h.era.Swap(eraUnknown)
	if h.OverSSE() {
		era = eraLegacy // the modern revision does not have that transport
	}
	silent := false
	if era != eraLegacy {
		pctx, cancel := context.WithTimeout(ctx, min(probeTime, h.Spec.ConnectTime()/2))
		g, err := h.discover(pctx, l)
		cancel()
		switch {
		case err == nil:
			h.era.Store(eraModern)
			return g, nil
		case l.Cause() != nil && l.Health().PID != 0:
			h.era.Store(eraLegacy)
			return nil, errShy
		case ctx.Err() != nil:
			return nil, err
		}
		silent = errors.Is(err, context.DeadlineExceeded)
	}
	g, err := h.initialize(ctx, l)
	var refused *transport.AnswerError
	if silent && errors.As(err, &refused) {
		// It was only slow to start, and would not be asked twice.
		if g, again := h.discover(ctx, l); again == nil {
			h.era.Store(eraModern)
			return g, nil
		}
	}
	if err == nil {
		h.era.Store(eraLegacy)
	}
	return g, err
}

// discover asks the server what it is, as the modern revision has it.
func (h *handshake) discover(ctx context.Context, l transport.Link) (*Greeting, error) {
	reply, err := l.Do(ctx, &session.Request{Method: mcp.Discover})
	if err == nil && offersModern(reply.Error) {
		reply, err = l.Do(ctx, &session.Request{Method: mcp.Discover})
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", mcp.Discover, err)
	}
	if reply.Error != nil {
		return nil, &transport.AnswerError{Code: reply.Error.Code}
	}
	g, err := readDiscovered(reply.Result)
	if err == nil {
		l.Agree(mcp.Modern)
	}
	return g, err
}

// offersModern reports whether a server that refuses a revision names the modern
// one among those it takes: then it is not to be asked in a legacy one.
func offersModern(e *wirejson.RPCError) bool {
	return e != nil && e.Code == mcp.CodeUnsupportedVersion && namesModern(wirejson.Find(e.Data, "supported"))
}

// initialize does the handshake of the legacy revisions.
func (h *handshake) initialize(ctx context.Context, l transport.Link) (*Greeting, error) {
	params := fmt.Appendf(nil, `{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"mcpproxy","version":%s}}`,
		mcp.Legacy, wirejson.AppendString(nil, h.ClientVersion))
	result, err := h.Ask(ctx, l, mcp.Initialize, params)
	if err != nil {
		return nil, fmt.Errorf("initialize: %w", err)
	}
	g, err := readGreeting(result)
	if err != nil {
		return nil, fmt.Errorf("initialize: %w", err)
	}
	l.Agree(g.Version)
	var status *transport.StatusError
	switch err := l.Notify(ctx, mcp.Initialized, nil); {
	case errors.As(err, &status): // some servers know no notifications
		h.log.Remark("notifications/initialized: " + err.Error())
	case err != nil:
		return nil, fmt.Errorf("send the end of the handshake: %w", err)
	}
	l.Attend(ctx)
	return g, nil
}

// Ask sends a request of our own and returns its result.
func (h *handshake) Ask(ctx context.Context, to session.Doer, method string, params json.RawMessage) (json.RawMessage, error) {
	reply, err := to.Do(ctx, &session.Request{Method: method, Params: params})
	if err != nil {
		return nil, err
	}
	if reply.Error != nil {
		h.log.Remark(fmt.Sprintf("error %d to %s: %s", reply.Error.Code, method, reply.Error.Message))
		return nil, &transport.AnswerError{Code: reply.Error.Code}
	}
	return reply.Result, nil
}

// unpromisedTime is how long a server may take to list tools that it has not promised. Few answer
// late, and one that has none may not answer at all.
const unpromisedTime = 2 * time.Second

// unpromised returns the tools of a server that has them without having said so in its
// capabilities.
func (h *handshake) unpromised(ctx context.Context, c *Connection) []*tool.Definition {
	ctx, cancel := context.WithTimeout(ctx, unpromisedTime)
	defer cancel()
	tools, err := h.ReadTools(ctx, c.link.Done(), func(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
		reply, err := c.Do(ctx, &session.Request{Method: mcp.ListTools, Params: params})
		if err == nil && reply.Error != nil {
			err = &transport.AnswerError{Code: reply.Error.Code}
		}
		return reply.Result, err
	})
	if err != nil || len(tools) == 0 {
		return nil
	}
	h.odd("it lists tools though its capabilities do not name them")
	return tools
}

// listTools returns the tools that the server lists to us.
func (h *handshake) listTools(ctx context.Context, c *Connection) ([]*tool.Definition, error) {
	if !c.greeting.hasTools {
		return h.unpromised(ctx, c), nil
	}
	return h.ReadTools(ctx, c.link.Done(), func(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
		return h.Ask(ctx, c, mcp.ListTools, params)
	})
}
