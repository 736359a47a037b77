package mcptest

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"testing"

	"mcpproxy/internal/mcp/wirejson"
)

const sessionHeader = "Mcp-Session-Id"

// ServeHTTP implements the streamable HTTP endpoint of the server.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodPost:
		s.handlePost(w, r)
	case http.MethodGet:
		s.serveNotificationStream(w, r)
	case http.MethodDelete:
		if c := s.findSession(w, r); c != nil {
			s.mu.Lock()
			delete(s.conns, r.Header.Get(sessionHeader))
			s.mu.Unlock()
			c.close()
		}
	default:
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

// findSession returns the client of a request. If there is none, it sends an error.
func (s *Server) findSession(w http.ResponseWriter, r *http.Request) *clientConn {
	id := r.Header.Get(sessionHeader)
	s.mu.Lock()
	c := s.conns[id]
	if c == nil && (s.opt.Stateless || s.opt.Modern) {
		c = newClientConn(s)
		s.conns[""] = c
	}
	s.mu.Unlock()
	if c == nil && s.opt.OldStatus {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		w.Write(wirejson.AppendError(nil, nil, &wirejson.RPCError{Code: -32000, Message: "Bad Request: No valid session ID provided"}))
	} else if c == nil {
		http.Error(w, "session not found", http.StatusNotFound)
	}
	return c
}

func (s *Server) newSession(w http.ResponseWriter) *clientConn {
	c := newClientConn(s)
	s.mu.Lock()
	defer s.mu.Unlock()
	id := ""
	if !s.opt.Stateless {
		s.sessions++
		id = "session-" + strconv.Itoa(s.sessions)
		w.Header().Set(sessionHeader, id)
	}
	s.conns[id] = c
	return c
}

func (s *Server) handlePost(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxMessage))
	if err != nil {
		return
	}
	m, err := wirejson.ParseServerMessage(body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.recordMessage(&m, r.Header)
	var c *clientConn
	if m.Method == "initialize" && !s.opt.Modern {
		c = s.newSession(w)
	} else if c = s.findSession(w, r); c == nil {
		return
	}
	a := &httpResponse{w: w, events: s.opt.Events, statuses: s.opt.Modern}
	answer := c.handleMessage(r.Context(), &m, Call{HTTP: w, send: a.sendEvent, raw: a.writeRaw})
	switch {
	case answer != nil:
		a.writeResponse(answer)
	case m.IsRequest() && s.opt.Mute:
		<-r.Context().Done()
	case !m.IsRequest():
		w.WriteHeader(http.StatusAccepted)
	}
}

// httpResponse is the response to a request: one JSON message, or an event stream if messages precede the
// response.
type httpResponse struct {
	w http.ResponseWriter

	mu      sync.Mutex // guards the fields below and orders the writes
	events  bool
	started bool

	statuses bool // errors have their own HTTP status
}

func (a *httpResponse) sendEvent(msg []byte) { a.writeRaw(wirejson.AppendSSEEvent(nil, "", msg)) }

func (a *httpResponse) writeRaw(b []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.started {
		a.w.Header().Set("Content-Type", "text/event-stream")
		a.events, a.started = true, true
	}
	a.w.Write(b)
	a.w.(http.Flusher).Flush()
}

func (a *httpResponse) writeResponse(answer []byte) {
	a.mu.Lock()
	events := a.events
	a.mu.Unlock()
	if events {
		a.sendEvent(answer)
		return
	}
	a.w.Header().Set("Content-Type", "application/json")
	if m, err := wirejson.ParseServerMessage(answer); a.statuses && err == nil && m.Error != nil {
		status := http.StatusBadRequest
		if m.Error.Code == wirejson.CodeMethodNotFound {
			status = http.StatusNotFound
		}
		a.w.WriteHeader(status)
	}
	a.w.Write(answer)
}

// serveNotificationStream serves the notification stream.
func (s *Server) serveNotificationStream(w http.ResponseWriter, r *http.Request) {
	if s.opt.NoStream {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	c := s.findSession(w, r)
	if c == nil {
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	flusher := w.(http.Flusher)
	flusher.Flush()
	msgs := make(chan []byte, 100_000)
	c.setStream(func(msg []byte) {
		select {
		case msgs <- bytes.Clone(msg):
		default:
		}
	})
	defer c.setStream(nil)
	for {
		select {
		case msg := <-msgs:
			w.Write(wirejson.AppendSSEEvent(nil, "", msg))
			if len(msgs) == 0 {
				flusher.Flush()
			}
		case <-r.Context().Done():
			return
		case <-c.closed:
			return
		}
	}
}

// HTTPServer is a handler with its own port.
type HTTPServer struct {
	URL  string // of the MCP endpoint
	addr string
	h    http.Handler
	t    testing.TB

	mu     sync.Mutex // guards server
	server *http.Server
	done   chan struct{}
}

// Serve serves h on 127.0.0.1 until the test ends.
func Serve(t testing.TB, h http.Handler) *HTTPServer {
	t.Helper()
	s := &HTTPServer{addr: "127.0.0.1:0", h: h, t: t}
	s.Start()
	s.URL = "http://" + s.addr + "/mcp"
	t.Cleanup(s.Stop)
	return s
}

// Start serves again after Stop, on the same port.
func (s *HTTPServer) Start() {
	s.t.Helper()
	ln, err := net.Listen("tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addr = ln.Addr().String()
	server, done := &http.Server{Handler: s.h}, make(chan struct{})
	s.server, s.done = server, done
	go func() {
		defer close(done)
		server.Serve(ln)
	}()
}

// Stop closes all connections and stops serving, like a crash.
func (s *HTTPServer) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server == nil {
		return
	}
	s.server.Close()
	<-s.done
	s.server.Shutdown(context.Background())
	s.server = nil
}
