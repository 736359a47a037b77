package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/transport"
	"mcpproxy/internal/mcp/wirejson"
)

// watch keeps a subscription open on which a modern server says that what it
// lists has changed, until ctx or the connection ends, or the server has no such
// thing.
func (s *Server) watch(ctx context.Context, c *Connection) {
	pause := transport.MinListenPause
	for {
		start := time.Now()
		err := s.watchOnce(ctx, c)
		var refused *transport.AnswerError
		switch {
		case ctx.Err() != nil || c.link.Cause() != nil:
			return
		case errors.As(err, &refused) && refused.Code == wirejson.CodeMethodNotFound:
			return
		case time.Since(start) >= transport.SteadyListen:
			pause = transport.MinListenPause
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		pause = min(2*pause, transport.MaxListenPause)
	}
}

// watchOnce subscribes once and waits for the end of it.
func (s *Server) watchOnce(ctx context.Context, c *Connection) error {
	r := &session.Request{
		Method: mcp.Listen,
		Params: json.RawMessage(`{"notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true}}`),
		Say: func(e session.Event) {
			if e.Method == mcp.Acknowledged { // of changes the link has told
				c.watched.Store(true)
				s.Reports().Missed() // what changed before nobody heard
			}
		},
	}
	defer c.watched.Store(false)
	reply, err := c.Do(ctx, r)
	if err == nil && reply.Error != nil {
		return &transport.AnswerError{Code: reply.Error.Code}
	}
	return err
}
