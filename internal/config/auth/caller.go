package auth

import (
	"net/http"
)

// Source is the surface that a request came in by.
type Source string

// The sources, as records have them.
const (
	MCP  Source = "mcp"
	REST Source = "rest"
	CLI  Source = "cli"
	UI   Source = "ui"
)

// Words returns all sources.
func (Source) Words() []string { return []string{string(MCP), string(REST), string(CLI), string(UI)} }

// Caller is who asks and from where, as records keep it.
type Caller struct {
	Actor         Actor
	Source        Source
	SessionID     string // of the record: it opens no session; "" without one
	RequestID     string
	ClientName    string
	ClientVersion string
	Origin        string // the connection that the request came by; "" over the socket
	Bounds        Bounds // to what it may reach; nil for none: see Scope
}

// Bounds are what a caller may reach, asked for each time that it matters: a token
// may be revoked, or a profile changed, while a request waits.
type Bounds interface {
	Scope() Scope
}

// Scope is what the caller may reach now: everything without bounds, nothing for
// nobody and for a token whose bounds are not known.
func (c *Caller) Scope() Scope {
	switch {
	case c.Bounds != nil && c.Known():
		return c.Bounds.Scope()
	case c.Known() && c.Actor.Name == "":
		return Scope{}
	}
	return ScopeOf(NoScope(""))
}

// Person reports whether a person decides. The key makes an MCP client none,
// even where it has to present it: who speaks there is a model.
func (c Caller) Person() bool { return c.Actor.Kind == Admin && c.Source != MCP }

// Known reports whether anybody is asking: nobody may do anything.
func (c Caller) Known() bool { return c.Actor.Kind != Nobody }

// AsAgent returns the caller with an agent's rights.
func (c Caller) AsAgent() Caller {
	c.Actor = Actor{Kind: Agent, Name: c.Actor.Name, ID: c.Actor.ID}
	return c
}

// Origin returns the connection that a request came by; "" over the socket,
// whose connections cannot be told apart.
func Origin(r *http.Request) string {
	if r.RemoteAddr == "@" {
		return ""
	}
	return r.RemoteAddr
}
