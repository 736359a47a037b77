package compat

import (
	"encoding/json"
	"testing"

	"mcpproxy/internal/mcp/transport"
)

// reportCounter counts the reports that it receives.
type reportCounter struct {
	transport.Reporter
	received int
}

func (c *reportCounter) Notification(string, json.RawMessage) bool { c.received++; return true }
func (c *reportCounter) NotificationsMissed()                      { c.received++ }
func (c *reportCounter) ConnectionDoubtful()                       { c.received++ }

// Messages and health of one client's link concern no other client.
func TestOwnLinkReportsStayWithTheClient(t *testing.T) {
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
