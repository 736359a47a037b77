package auth

import (
	"net/http"
)

// RequestSource is the API through which a request arrived.
type RequestSource string

// The sources, as recorded.
const (
	MCP  RequestSource = "mcp"
	REST RequestSource = "rest"
	CLI  RequestSource = "cli"
	UI   RequestSource = "ui"
)

// Words returns the names of all sources.
func (RequestSource) Words() []string {
	return []string{string(MCP), string(REST), string(CLI), string(UI)}
}

// Caller is the actor of a request and where it came from, as recorded.
type Caller struct {
	Actor         Actor
	Source        RequestSource
	SessionID     string // public id of the session, not a credential; "" if there is none
	RequestID     string
	ClientName    string
	ClientVersion string
	Origin        string // the connection of the request; "" over the socket
	Bounds        Bounds // limits of its access; nil means no limits, see Scope
}

// Bounds are a caller's current limits. They are evaluated at each use, because a token may be revoked, or a profile
// may change, while a request waits.
type Bounds interface {
	Scope() Scope
}

// Scope returns the caller's current scope. It allows everything if the caller has no bounds, and nothing for the
// actor Nobody or for a token whose bounds are unknown.
func (c *Caller) Scope() Scope {
	switch {
	case c.Bounds != nil && c.IsKnown():
		return c.Bounds.Scope()
	case c.IsKnown() && c.Actor.Name == "":
		return Scope{}
	}
	return NewScope(DenyAllRule(""))
}

// IsUser reports whether a user makes the request. An MCP client is never a user, even
// with the API key, because a model controls it.
func (c Caller) IsUser() bool { return c.Actor.Kind == Admin && c.Source != MCP }

// IsKnown reports whether the caller was identified. The actor Nobody has no rights.
func (c Caller) IsKnown() bool { return c.Actor.Kind != Nobody }

// AsAgent returns the caller with an agent's rights.
func (c Caller) AsAgent() Caller {
	c.Actor = Actor{Kind: Agent, Name: c.Actor.Name, ID: c.Actor.ID}
	return c
}

// ConnectionAddress returns the connection of a request; "" over the socket, whose connections
// cannot be distinguished.
func ConnectionAddress(r *http.Request) string {
	if r.RemoteAddr == "@" {
		return ""
	}
	return r.RemoteAddr
}
