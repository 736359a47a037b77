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

// keepSubscribed keeps a subscription to list changes open on a modern server. It returns when ctx or the connection
// ends, or when the server does not support subscriptions.
func (s *Server) keepSubscribed(ctx context.Context, c *Connection) {
	pause := transport.MinListenPause
	for {
		start := time.Now()
		err := s.subscribeOnce(ctx, c)
		var refused *transport.ServerRPCError
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

// subscribeOnce subscribes once and waits until the subscription ends.
func (s *Server) subscribeOnce(ctx context.Context, c *Connection) error {
	r := &session.Request{
		Method: mcp.Listen,
		Params: json.RawMessage(`{"notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true}}`),
		Say: func(e session.Event) {
			if e.Method == mcp.Acknowledged { // the link has reported changes
				c.watched.Store(true)
				s.ReportReceiver().NotificationsMissed() // earlier changes were missed
			}
		},
	}
	defer c.watched.Store(false)
	reply, err := c.Do(ctx, r)
	if err == nil && reply.Error != nil {
		return &transport.ServerRPCError{Code: reply.Error.Code}
	}
	return err
}
