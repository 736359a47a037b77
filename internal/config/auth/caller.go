package auth

import (
	"net/http"
	"time"
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

// GrantedLanes returns the lanes that the caller's token allows. A call in another lane is within the scope, but needs
// another token. A caller without an access token has all lanes.
func (c *Caller) GrantedLanes() OperationLaneSet {
	if b, ok := c.Bounds.(*callerBounds); ok {
		return b.granted()
	}
	return AllLanes
}

// BeginCall counts a call against the limits of the user. Without an error, the caller must call done with the size of
// the result.
func (c *Caller) BeginCall() (done func(bytes int), err error) {
	b, _ := c.Bounds.(*callerBounds)
	if b == nil || b.token.User() == nil {
		return func(int) {}, nil
	}
	usage := b.token.User().Usage
	if limit, wait := usage.BeginCall(time.Now()); limit != "" {
		return nil, RateLimitProblem(limit, wait)
	}
	return usage.EndCall, nil
}

// MissLane remembers that a call was refused because the caller's token does not allow its lane.
func (c *Caller) MissLane(l OperationLane) {
	if b, ok := c.Bounds.(*callerBounds); ok {
		b.missing.Store(uint32(l))
	}
}

// MissedLane returns the lane of MissLane; 0 if there is none.
func MissedLane(b Bounds) OperationLane {
	if own, ok := b.(*callerBounds); ok {
		return OperationLane(own.missing.Load())
	}
	return 0
}

// IsUser reports whether a user makes the request. An MCP client is never a user, even with the API key or the access
// token of a user, because a model controls it.
func (c Caller) IsUser() bool {
	return (c.Actor.Kind == Admin || c.Actor.Role != NoRole) && c.Source != MCP
}

// IsKnown reports whether the caller was identified. The actor Nobody has no rights.
func (c Caller) IsKnown() bool { return c.Actor.Kind != Nobody }

// AsAgent returns the caller with an agent's rights.
func (c Caller) AsAgent() Caller {
	c.Actor.Kind, c.Actor.FromWebUI = Agent, false
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
