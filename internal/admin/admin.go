// Package admin is the operations that decide: servers are added, changed and
// removed, their launch and their definitions reviewed, approved and refused. Each
// operation is a method; an agent may propose a server, all else is a person's.
//
// It guarantees that nobody but a person decides what may be called or started;
// that who decided is on record before anything changes, and how it went after;
// that a decision is about what the person has looked at, by its fingerprint; and
// that it is in force when the operation returns. It calls no tool, and how things
// are shown is package gateway's.
package admin

import (
	"context"
	"encoding/json"

	"mcpproxy/internal/config"
	"mcpproxy/internal/gateway"
)

// Editor changes the configuration file, and applies what it changed before it
// returns. See config.Live.
type Editor interface {
	AddServers(permit config.Permit, all ...config.NamedEdit) error
	FitServers(all ...config.NamedEdit) error
	RemoveServer(name string) error
	SetServer(permit config.Permit, name, field string, value json.RawMessage) error
	OverrideHints(permit config.Permit, name, tool string, hints json.RawMessage) error
	// Itself refuses a launch that leads back to this MCPProxy.
	Itself(config.Launch) error
}

// Admin is all operations: those of the Gateway, and those that decide.
type Admin struct {
	*gateway.Gateway
	journal
	proposals proposals
	editor    Editor
	summaries summaries
}

// New makes an Admin.
func New(g *gateway.Gateway, e Editor) *Admin {
	j := journal{g.Log, g.Logger}
	return &Admin{Gateway: g, journal: j, proposals: proposals{j, g.Book, g.Config}, editor: e}
}

// after is how a server is after something was done to it.
func (a *Admin) after(ctx context.Context, c Caller, in gateway.ServerRef, err error) (gateway.ServerView, error) {
	if err != nil {
		return gateway.ServerView{}, err
	}
	return a.Server(ctx, c, in)
}
