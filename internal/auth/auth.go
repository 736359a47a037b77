// Package auth says who is asking: it turns the socket, an API key or (later)
// an agent token into an Actor.
//
// It guarantees that a request that proves nothing is an agent at most, never
// the admin, and that keys are compared in constant time, never logged and
// never taken from a URL. What an actor may do to a tool is policy's.
package auth

import (
	"context"
	"net"
	"net/http"
)

// Actor is who asks. The zero value is nobody, and may do nothing.
type Actor struct {
	Kind Kind
	// Name is the name of the agent token, empty otherwise.
	Name string
}

// Kind is the kind of an actor.
type Kind uint8

// The kinds.
const (
	Nobody Kind = iota
	Agent       // an MCP client
	Admin       // the person: the socket, or the API key
)

// String is how the actor stands in records: "admin", "agent", or the name of
// the token as "agent:NAME".
func (a Actor) String() string {
	switch {
	case a.Kind == Admin:
		return "admin"
	case a.Kind == Agent && a.Name != "":
		return "agent:" + a.Name
	case a.Kind == Agent:
		return "agent"
	}
	return "nobody"
}

// LoadOrCreateKey gives the API key.
func LoadOrCreateKey(dataDir, configured string) (string, error) { panic("todo") }

// Authenticator turns a request into an Actor.
type Authenticator struct{ hash [32]byte }

// New makes an Authenticator for the key.
func New(key string) *Authenticator { panic("todo") }

// Actor says who asks.
func (a *Authenticator) Actor(r *http.Request) Actor { panic("todo") }

// WithSocket marks ctx as belonging to a connection over the unix socket.
func WithSocket(ctx context.Context) context.Context { panic("todo") }

// FromSocket says whether ctx was marked by WithSocket.
func FromSocket(ctx context.Context) bool { panic("todo") }

// ConnContext is for http.Server.ConnContext: it marks connections that came
// in over a unix socket.
func ConnContext(ctx context.Context, c net.Conn) context.Context { panic("todo") }
