// Package mcptest has fake MCP servers for tests: correct ones and many kinds of faulty ones, over
// streamable HTTP and stdio, with the legacy protocol and, if requested, the modern one.
//
// A Server has tools, each with its definition as raw JSON and a handler from raw arguments to a raw
// result; a handler may also notify, write arbitrary bytes, wait, or end the process. SampleTools has a tool of
// each kind. Over stdio a server is a separate process of the same test binary: see RunIfChild.
//
// Only tests import this package.
package mcptest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"mcpproxy/internal/mcp/wirejson"
)

// Options configure a Server, except for its tools. The zero value is a correct server of 2025-11-25.
type Options struct {
	Name         string // in serverInfo; "fake" when empty
	Protocol     string // the protocol version of its answer; "" repeats the requested one
	Instructions string
	PageSize     int  // tools per page of tools/list; 0 means all on one page
	NoTools      bool // it declares no tools capability
	EndlessPages bool // every page of tools/list has a next one
	PageText     int  // with EndlessPages: each page has its own tool with a description of this many bytes
	Mute         bool // it answers nothing at all, not even initialize
	Modern       bool // it supports only 2026-07-28
	// Capabilities are the declared capabilities as JSON; "" means tools and logging.
	Capabilities string
	// Other answers requests that the server does not answer itself. It may be nil.
	Other func(method string, c *Call) (json.RawMessage, error)
	// OnInitialize is called with the params of initialize, before its answer. It may be nil.
	OnInitialize func(s *Server, params json.RawMessage)

	// Over HTTP.
	Events    bool // answers are event streams even without notifications
	Stateless bool // it issues no session id
	NoStream  bool // it has no stream for its own messages
	OldStatus bool // it answers 400 instead of 404 for an unknown session

	// Over stdio.
	Banner     string // written to stdout before anything else
	IgnoreTerm bool   // SIGTERM and the end of stdin do not end it
}

// Tool is a tool of a Server. Definition is the tool object with its name. A nil Handle returns an empty
// result.
type Tool struct {
	Definition string
	Handle     func(*Call) (json.RawMessage, error)
}

// name is the tool's name in its definition.
func (t Tool) name() string {
	name, _ := wirejson.String(wirejson.Find([]byte(t.Definition), "name"))
	return name
}

// Server is a fake MCP server. It is safe for concurrent use.
type Server struct {
	opt   Options
	text  string       // of PageText, as JSON
	pages atomic.Int64 // that were listed with it

	endless atomic.Int64 // pages that were listed with EndlessPages

	mu       sync.Mutex // guards the fields below
	tools    []Tool
	conns    map[string]*clientConn // by session id; "" is the stateless or stdio one
	sessions int
	seen     []ReceivedMessage
}

// ReceivedMessage is a received message.
type ReceivedMessage struct {
	Method string
	ID     string // of a request, as JSON
	Params json.RawMessage
	Header map[string][]string // of the HTTP request it came in
}

// New returns a Server.
func New(opt Options, tools ...Tool) *Server {
	if opt.Name == "" {
		opt.Name = "fake"
	}
	return &Server{opt: opt, text: quoteJSON(strings.Repeat("x", opt.PageText)), tools: tools, conns: map[string]*clientConn{}}
}

// SetTools replaces the tools and notifies every client.
func (s *Server) SetTools(tools ...Tool) {
	s.mu.Lock()
	s.tools = tools
	s.mu.Unlock()
	s.Broadcast("notifications/tools/list_changed", nil)
}

// Broadcast sends a notification to every client.
func (s *Server) Broadcast(method string, params json.RawMessage) {
	msg := wirejson.AppendNotification(nil, method, params)
	s.mu.Lock()
	conns := make([]*clientConn, 0, len(s.conns))
	for _, c := range s.conns {
		conns = append(conns, c)
	}
	s.mu.Unlock()
	for _, c := range conns {
		c.pushMessage(msg)
	}
}

// Received returns the received messages of a method, or all messages if method is empty.
func (s *Server) Received(method string) []ReceivedMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []ReceivedMessage
	for _, m := range s.seen {
		if method == "" || m.Method == method {
			out = append(out, m)
		}
	}
	return out
}

// DropSessions ends all sessions: their clients must initialize again.
func (s *Server) DropSessions() {
	s.mu.Lock()
	conns := s.conns
	s.conns = map[string]*clientConn{}
	s.mu.Unlock()
	for _, c := range conns {
		c.close()
	}
}

// maxReceived limits the number of messages that Received returns.
const maxReceived = 100_000

func (s *Server) recordMessage(m *wirejson.Message, header map[string][]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.seen) < maxReceived {
		s.seen = append(s.seen, ReceivedMessage{Method: m.Method, ID: string(m.ID),
			Params: append(json.RawMessage(nil), m.Params...), Header: header})
	}
}

// initializeResult returns the result of the handshake.
func (s *Server) initializeResult(params json.RawMessage) json.RawMessage {
	if s.opt.OnInitialize != nil {
		s.opt.OnInitialize(s, params)
	}
	version := s.opt.Protocol
	if version == "" {
		version, _ = wirejson.String(wirejson.Find(params, "protocolVersion"))
	}
	caps := `{"tools":{"listChanged":true},"logging":{}}`
	if s.opt.NoTools {
		caps = `{}`
	}
	if s.opt.Capabilities != "" {
		caps = s.opt.Capabilities
	}
	if s.opt.Modern {
		return fmt.Appendf(nil, `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":%s,"ttlMs":0,"cacheScope":"private",`+
			`"_meta":{"io.modelcontextprotocol/serverInfo":{"name":%s,"version":"1"}}}`, caps, quoteJSON(s.opt.Name))
	}
	return fmt.Appendf(nil, `{"protocolVersion":%s,"capabilities":%s,"serverInfo":{"name":%s,"version":"1"},"instructions":%s}`,
		quoteJSON(version), caps, quoteJSON(s.opt.Name), quoteJSON(s.opt.Instructions))
}

// listTools returns one page of tools.
func (s *Server) listTools(params json.RawMessage) (json.RawMessage, error) {
	s.mu.Lock()
	tools := s.tools
	s.mu.Unlock()
	from := 0
	if cursor, ok := wirejson.String(wirejson.Find(params, "cursor")); ok && !s.opt.EndlessPages {
		if _, err := fmt.Sscanf(cursor, "from-%d", &from); err != nil || from > len(tools) {
			return nil, &wirejson.RPCError{Code: wirejson.CodeInvalidParams, Message: "bad cursor"}
		}
	}
	to := len(tools)
	if s.opt.PageSize > 0 {
		to = min(to, from+s.opt.PageSize)
	}
	out := []byte(`{"tools":[`)
	for i, t := range tools[from:to] {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, t.Definition...)
	}
	if s.opt.PageText > 0 {
		if to > from {
			out = append(out, ',')
		}
		out = fmt.Appendf(slices.Grow(out, len(s.text)+200), `{"name":"only_on_page_%d","description":%s,"inputSchema":{"type":"object"}}`,
			s.pages.Add(1), s.text)
	}
	out = append(out, ']')
	switch {
	case s.opt.EndlessPages:
		out = fmt.Appendf(out, `,"nextCursor":"page-%d"`, s.endless.Add(1))
	case to < len(tools):
		out = fmt.Appendf(out, `,"nextCursor":"from-%d"`, to)
	}
	return append(out, '}'), nil
}

func (s *Server) findTool(name string) (Tool, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.tools {
		if t.name() == name {
			return t, true
		}
	}
	return Tool{}, false
}

func quoteJSON(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string can always be encoded
	}
	return string(b)
}

// ErrNoAnswer is the error of a handler that sends no response.
var ErrNoAnswer = errors.New("no answer")

// clientConn is one client: a session, or the client on stdio.
type clientConn struct {
	server *Server

	mu      sync.Mutex // guards the fields below
	calls   map[string]context.CancelFunc
	asked   map[string]chan wirejson.Message // requests to the client, by id
	asks    int
	out     func(msg []byte) // receives messages that belong to no call; nil if there is no stream
	waiting [][]byte         // messages that wait for a stream
	closed  chan struct{}
}

func newClientConn(s *Server) *clientConn {
	return &clientConn{server: s, calls: map[string]context.CancelFunc{}, asked: map[string]chan wirejson.Message{},
		closed: make(chan struct{})}
}

// pushMessage sends a message that belongs to no call.
func (c *clientConn) pushMessage(msg []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.out != nil:
		c.out(msg)
	case len(c.waiting) < 100:
		c.waiting = append(c.waiting, msg)
	}
}

// setStream sets the stream for pushed messages.
func (c *clientConn) setStream(out func([]byte)) {
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

func (c *clientConn) close() {
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

// Call is a tools/call. Its methods are for its handler.
type Call struct {
	Tool      string
	ID        json.RawMessage
	Params    json.RawMessage
	Arguments json.RawMessage
	Server    *Server
	// HTTP is the response of the call over HTTP, for handlers that write it themselves and return
	// ErrNoAnswer; nil over stdio.
	HTTP http.ResponseWriter

	ctx  context.Context
	conn *clientConn
	send func(msg []byte) // a message that belongs to this call
	raw  func(b []byte)
}

// Context ends when the call is cancelled or the client disconnects.
func (c *Call) Context() context.Context { return c.ctx }

// IntArgument returns an integer argument, or def.
func (c *Call) IntArgument(name string, def int) int {
	if n, ok := wirejson.Int(wirejson.Find(c.Arguments, name)); ok {
		return int(n)
	}
	return def
}

// Notify sends a notification that belongs to the call.
func (c *Call) Notify(method string, params json.RawMessage) {
	c.send(wirejson.AppendNotification(nil, method, params))
}

// SendProgress sends progress n if the caller requested it.
func (c *Call) SendProgress(n int) {
	token := wirejson.Find(wirejson.Find(c.Params, "_meta"), "progressToken")
	if token == nil {
		return
	}
	params := append([]byte(`{"progressToken":`), token...)
	c.Notify("notifications/progress", append(strconv.AppendInt(append(params, `,"progress":`...), int64(n), 10), '}'))
}

// SendLogMessage sends a log message.
func (c *Call) SendLogMessage(text string) {
	c.Notify("notifications/message", json.RawMessage(`{"level":"info","data":`+quoteJSON(text)+`}`))
}

// WriteRaw writes b unchanged: over stdio to stdout, over HTTP to the event stream of the call.
func (c *Call) WriteRaw(b []byte) { c.raw(b) }

// SendRequest sends a request to the client and returns its response.
func (c *Call) SendRequest(method string, params json.RawMessage) (wirejson.Message, error) {
	c.conn.mu.Lock()
	c.conn.asks++
	id := uint64(c.conn.asks)
	answer := make(chan wirejson.Message, 1)
	c.conn.asked[strconv.FormatUint(id, 10)] = answer
	c.conn.mu.Unlock()
	c.send(wirejson.AppendRequest(nil, id, method, params))
	select {
	case m := <-answer:
		return m, nil
	case <-c.ctx.Done():
		return wirejson.Message{}, c.ctx.Err()
	}
}

// OpenQuestions returns the number of requests to clients that have no response.
func (s *Server) OpenQuestions() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.conns {
		c.mu.Lock()
		n += len(c.asked)
		c.mu.Unlock()
	}
	return n
}

// handleMessage handles one message. It returns the response to a request, or nil.
func (c *clientConn) handleMessage(ctx context.Context, m *wirejson.Message, call Call) []byte {
	if c.server.opt.Mute {
		return nil
	}
	switch {
	case m.IsResponse():
		c.deliverResponse(m)
		return nil
	case m.IsNotification():
		if m.Method == "notifications/cancelled" {
			c.cancelCall(string(wirejson.Find(m.Params, "requestId")))
		}
		return nil
	}
	result, err := c.handleRequest(ctx, m, call)
	var e *wirejson.RPCError
	switch {
	case errors.Is(err, ErrNoAnswer):
		return nil
	case errors.As(err, &e):
		return wirejson.AppendError(nil, m.ID, e)
	case err != nil:
		return wirejson.AppendError(nil, m.ID, &wirejson.RPCError{Code: wirejson.CodeInternal, Message: err.Error()})
	}
	return wirejson.AppendResult(nil, m.ID, result)
}

func (c *clientConn) handleRequest(ctx context.Context, m *wirejson.Message, call Call) (json.RawMessage, error) {
	switch opt := &c.server.opt; {
	case m.Method == "initialize" && !opt.Modern, m.Method == "server/discover" && opt.Modern:
		return c.server.initializeResult(m.Params), nil
	case m.Method == "ping" && !opt.Modern:
		return json.RawMessage("{}"), nil
	case m.Method == "tools/list":
		return c.server.listTools(m.Params)
	case m.Method == "tools/call":
		return c.handleToolCall(ctx, m, call)
	case opt.Other != nil:
		call.ID, call.Params, call.Server, call.ctx, call.conn = m.ID, m.Params, c.server, ctx, c
		return opt.Other(m.Method, &call)
	}
	return nil, &wirejson.RPCError{Code: wirejson.CodeMethodNotFound, Message: "Method not found: " + m.Method}
}

func (c *clientConn) handleToolCall(ctx context.Context, m *wirejson.Message, call Call) (json.RawMessage, error) {
	name, _ := wirejson.String(wirejson.Find(m.Params, "name"))
	t, ok := c.server.findTool(name)
	if !ok {
		return nil, &wirejson.RPCError{Code: wirejson.CodeInvalidParams, Message: "Unknown tool: " + name}
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
	call.Arguments = wirejson.Find(m.Params, "arguments")
	call.Server, call.ctx, call.conn = c.server, ctx, c
	return t.Handle(&call)
}

func (c *clientConn) cancelCall(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cancel := c.calls[id]; cancel != nil {
		cancel()
	}
}

func (c *clientConn) deliverResponse(m *wirejson.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if answer := c.asked[string(m.ID)]; answer != nil {
		delete(c.asked, string(m.ID))
		answer <- *m
	}
}
