package compat

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/transport"
)

// silentPeer is a server that never answers a notification.
type silentPeer struct{ sessionPeer }

func (silentPeer) Cause() error { return nil }
func (silentPeer) NotifyServer(ctx context.Context, _ string, _ json.RawMessage) error {
	<-ctx.Done()
	return ctx.Err()
}

// A client's notification counts as sent even if the server never answers it, so that the client does not wait forever.
func TestNotificationWithoutAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Session{sessionPeer: silentPeer{}, started: time.Now()}
		if err := s.NotifyServer(t.Context(), mcp.Initialized, nil); err != nil {
			t.Error(err)
		}
	})
}

// reportCounter counts the reports that it receives.
type reportCounter struct {
	transport.Reporter
	received int
}

func (c *reportCounter) Notification(string, json.RawMessage) bool { c.received++; return true }
func (c *reportCounter) NotificationsMissed()                      { c.received++ }
func (c *reportCounter) ConnectionDoubtful()                       { c.received++ }

// Messages and failures on one client's link do not affect other clients.
func TestOwnLinkMessagesStayWithTheClient(t *testing.T) {
	var all reportCounter
	own := exclusiveLinkReporter{Reporter: &all}
	if own.Notification("notifications/prompts/list_changed", nil) {
		t.Error("a notification of one client's link may concern other clients")
	}
	own.NotificationsMissed()
	own.ConnectionDoubtful()
	if all.received != 0 {
		t.Errorf("the server received %d reports of one client's link", all.received)
	}
}
