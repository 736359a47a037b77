package mcptest

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"sync"

	"mcpproxy/internal/jsonrpc"
	"mcpproxy/internal/rawjson"
)

// ErrNoAnswer is what a handler returns when there is to be no response.
var ErrNoAnswer = errors.New("no answer")

// conn is one client: a session, or the client on stdio.
type conn struct {
	server *Server

	mu      sync.Mutex // guards what follows
	calls   map[string]context.CancelFunc
	asked   map[string]chan jsonrpc.Message // requests to the client, by id
	asks    int
	out     func(msg []byte) // where messages go that belong to no call; nil while there is no such place
	waiting [][]byte         // what was pushed while there was none
	closed  chan struct{}
}

func newConn(s *Server) *conn {
	return &conn{server: s, calls: map[string]context.CancelFunc{}, asked: map[string]chan jsonrpc.Message{},
		closed: make(chan struct{})}
}

// push sends a message that belongs to no call.
func (c *conn) push(msg []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.out != nil:
		c.out(msg)
	case len(c.waiting) < 100:
		c.waiting = append(c.waiting, msg)
	}
}

// attach says where pushed messages go from now on.
func (c *conn) attach(out func([]byte)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out = out
	if out == nil {
		return
	}
	for _, msg := range c.waiting {
		out(msg)
	}
	c.waiting = nil
}

func (c *conn) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.closed:
		return
	default:
	}
	close(c.closed)
	for _, cancel := range c.calls {
		cancel()
	}
}

// Call is one tools/call. Its methods are for its handler.
type Call struct {
	Tool      string
	ID        json.RawMessage
	Params    json.RawMessage
	Arguments json.RawMessage
	Server    *Server
	// HTTP is the response of the call over HTTP, for handlers that write it
	// themselves and then return ErrNoAnswer; nil over stdio.
	HTTP http.ResponseWriter

	ctx  context.Context
	conn *conn
	send func(msg []byte) // a message that belongs to this call
	raw  func(b []byte)
}

// Context ends when the call is cancelled or the client has gone.
func (c *Call) Context() context.Context { return c.ctx }

// Int returns an argument that is an integer, or def.
func (c *Call) Int(name string, def int) int {
	if n, ok := rawjson.Int(rawjson.Find(c.Arguments, name)); ok {
		return int(n)
	}
	return def
}

// Notify sends a notification that belongs to the call.
func (c *Call) Notify(method string, params json.RawMessage) {
	c.send(jsonrpc.AppendNotification(nil, method, params))
}

// Progress sends progress n, if the caller wants to know.
func (c *Call) Progress(n int) {
	token := rawjson.Find(rawjson.Find(c.Params, "_meta"), "progressToken")
	if token == nil {
		return
	}
	params := append([]byte(`{"progressToken":`), token...)
	c.Notify("notifications/progress", append(strconv.AppendInt(append(params, `,"progress":`...), int64(n), 10), '}'))
}

// Log sends a log message.
func (c *Call) Log(text string) {
	c.Notify("notifications/message", json.RawMessage(`{"level":"info","data":`+quote(text)+`}`))
}

// Raw writes b to the wire as it is: over stdio to stdout, over HTTP to the
// event stream of the call.
func (c *Call) Raw(b []byte) { c.raw(b) }

// Ask sends a request to the client and returns its response.
func (c *Call) Ask(method string, params json.RawMessage) (jsonrpc.Message, error) {
	c.conn.mu.Lock()
	c.conn.asks++
	id := uint64(c.conn.asks)
	answer := make(chan jsonrpc.Message, 1)
	c.conn.asked[strconv.FormatUint(id, 10)] = answer
	c.conn.mu.Unlock()
	c.send(jsonrpc.AppendRequest(nil, id, method, params))
	select {
	case m := <-answer:
		return m, nil
	case <-c.ctx.Done():
		return jsonrpc.Message{}, c.ctx.Err()
	}
}

// handle deals with one message. For a request it returns the response, nil
// when there is to be none.
func (c *conn) handle(ctx context.Context, m *jsonrpc.Message, call Call) []byte {
	if c.server.opt.Mute {
		return nil
	}
	switch {
	case m.IsResponse():
		c.answered(m)
		return nil
	case m.IsNotification():
		if m.Method == "notifications/cancelled" {
			c.cancelled(string(rawjson.Find(m.Params, "requestId")))
		}
		return nil
	}
	result, err := c.result(ctx, m, call)
	var e *jsonrpc.Error
	switch {
	case errors.Is(err, ErrNoAnswer):
		return nil
	case errors.As(err, &e):
		return jsonrpc.AppendError(nil, m.ID, e)
	case err != nil:
		return jsonrpc.AppendError(nil, m.ID, &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: err.Error()})
	}
	return jsonrpc.AppendResult(nil, m.ID, result)
}

func (c *conn) result(ctx context.Context, m *jsonrpc.Message, call Call) (json.RawMessage, error) {
	switch opt := &c.server.opt; {
	case m.Method == "initialize" && !opt.Modern, m.Method == "server/discover" && opt.Modern:
		return c.server.initialize(m.Params), nil
	case m.Method == "ping" && !opt.Modern:
		return json.RawMessage("{}"), nil
	case m.Method == "tools/list":
		return c.server.list(m.Params)
	case m.Method == "tools/call":
		return c.call(ctx, m, call)
	case opt.Other != nil:
		call.ID, call.Params, call.Server, call.ctx, call.conn = m.ID, m.Params, c.server, ctx, c
		return opt.Other(m.Method, &call)
	}
	return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "Method not found: " + m.Method}
}

func (c *conn) call(ctx context.Context, m *jsonrpc.Message, call Call) (json.RawMessage, error) {
	name, _ := rawjson.String(rawjson.Find(m.Params, "name"))
	t, ok := c.server.tool(name)
	if !ok {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "Unknown tool: " + name}
	}
	if t.Handle == nil {
		return json.RawMessage(`{"content":[]}`), nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	id := string(m.ID)
	c.mu.Lock()
	c.calls[id] = cancel
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.calls, id)
		c.mu.Unlock()
	}()
	call.Tool, call.ID, call.Params = name, m.ID, m.Params
	call.Arguments = rawjson.Find(m.Params, "arguments")
	call.Server, call.ctx, call.conn = c.server, ctx, c
	return t.Handle(&call)
}

func (c *conn) cancelled(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cancel := c.calls[id]; cancel != nil {
		cancel()
	}
}

func (c *conn) answered(m *jsonrpc.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if answer := c.asked[string(m.ID)]; answer != nil {
		delete(c.asked, string(m.ID))
		answer <- *m
	}
}
