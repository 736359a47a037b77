package ops

import (
	"context"
	"encoding/json"

	"mcpproxy/internal/config"
)

// Editor changes the configuration file and applies each change before it returns. config.LiveConfig implements it.
type Editor interface {
	AddServers(permit config.ConfirmFunc, all ...config.NamedEdit) error
	CheckNewServers(all ...config.NamedEdit) error
	RemoveServer(name string) error
	SetServer(permit config.ConfirmFunc, name, field string, value json.RawMessage) error
	SetHintOverride(permit config.ConfirmFunc, name, tool string, hints json.RawMessage) error
	// Itself rejects a launch that connects back to this MCPProxy.
	CheckNotSelfReference(config.Launch) error
}

// Admin has all operations: the read operations of Gateway, and those that change servers and approvals.
type Admin struct {
	*Gateway
	journal
	proposals proposals
	editor    Editor
	summaries changeSummaries
}

// NewAdmin returns an Admin that edits the configuration through e.
func NewAdmin(g *Gateway, e Editor) *Admin {
	j := journal{g.Log, g.Logger}
	return &Admin{Gateway: g, journal: j, proposals: proposals{j, g.Book, g.Config}, editor: e}
}

// viewAfter returns the server's view after an operation on it, or the error of that operation.
func (a *Admin) viewAfter(ctx context.Context, c Caller, in ServerRef, err error) (ServerView, error) {
	if err != nil {
		return ServerView{}, err
	}
	return a.Server(ctx, c, in)
}
