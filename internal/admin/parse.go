package admin

import (
	"context"

	"mcpproxy/internal/gateway"
)

// ParseServers reads the servers of a text that a person has pasted, as AddServer
// takes them. Nothing is added, stored or on record.
func (a *Admin) ParseServers(_ context.Context, _ Caller, in gateway.Pasted) (gateway.Parsed, error) {
	return gateway.ParseServers(in, a.Config(), a.editor.Itself)
}
