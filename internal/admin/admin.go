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
	"log/slog"

	"mcpproxy/internal/approval"
	"mcpproxy/internal/catalog"
	"mcpproxy/internal/config"
	"mcpproxy/internal/gateway"
	"mcpproxy/internal/offers"
)

// Editor changes the configuration file, and applies what it changed before it
// returns. See config.Live.
type Editor interface {
	AddServer(name string, s config.ServerEdit) error
	RemoveServer(name string) error
	SetServer(name, field string, value json.RawMessage) error
}

// Deps is what an Admin is made of.
type Deps struct {
	Config   func() *config.Config // that is live
	Editor   Editor
	Catalog  *catalog.Catalog
	Book     *approval.Book
	Offers   *offers.Guard
	Relaunch func() // starts and stops servers by what may run now
	Log      Log
	Logger   *slog.Logger
	Gateway  *gateway.Gateway // shows what has become of a server or a tool
}

// Admin is the operations that change something.
type Admin struct{ Deps }

// New makes an Admin.
func New(d Deps) *Admin { return &Admin{Deps: d} }

func (a *Admin) journal() journal { return journal{a.Log, a.Logger} }

// after is how a server is after something was done to it.
func (a *Admin) after(ctx context.Context, c Caller, in gateway.ServerRef, err error) (gateway.ServerView, error) {
	if err != nil {
		return gateway.ServerView{}, err
	}
	return a.Gateway.Server(ctx, c, in)
}
