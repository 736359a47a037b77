package ops

import (
	"context"
	"encoding/json"

	"mcpproxy/internal/config"
)

// Editor changes the configuration file, and applies what it changed before it
// returns. See config.Live.
type Editor interface {
	AddServers(permit config.Permit, all ...config.NamedEdit) error
	CheckNewServers(all ...config.NamedEdit) error
	RemoveServer(name string) error
	SetServer(permit config.Permit, name, field string, value json.RawMessage) error
	OverrideHints(permit config.Permit, name, tool string, hints json.RawMessage) error
	// Itself refuses a launch that leads back to this MCPProxy.
	CheckNotSelf(config.Launch) error
}

// Admin is all operations: those of the Gateway, and those that decide.
type Admin struct {
	*Gateway
	journal
	proposals proposals
	editor    Editor
	summaries summaries
}

// NewAdmin makes an Admin.
func NewAdmin(g *Gateway, e Editor) *Admin {
	j := journal{g.Log, g.Logger}
	return &Admin{Gateway: g, journal: j, proposals: proposals{j, g.Book, g.Config}, editor: e}
}

// after is how a server is after something was done to it.
func (a *Admin) after(ctx context.Context, c Caller, in ServerRef, err error) (ServerView, error) {
	if err != nil {
		return ServerView{}, err
	}
	return a.Server(ctx, c, in)
}
