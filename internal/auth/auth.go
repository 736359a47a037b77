// Package auth decides who is asking: it turns the socket, an API key, the session
// of a page of the web UI or (later) an agent token into an Actor.
//
// It guarantees that a request that proves nothing is an agent at most, never
// the admin, that a request with a wrong key is nobody, and that keys, codes and
// sessions are compared in constant time, never logged and never taken from a URL.
// A session counts where it is asked for, which is REST alone. It does not judge:
// what an actor may do to a tool is policy's, and what a route needs is the api's.
package auth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"strings"
)

// Actor is who asks. The zero value is nobody, and may do nothing.
type Actor struct {
	Kind Kind
	// Name is the name of the agent token, empty otherwise.
	Name string
	// Page is set for who has come by the session of a page.
	Page bool
}

// Kind is the kind of an actor.
type Kind uint8

// The kinds.
const (
	Nobody Kind = iota
	Agent       // an MCP client
	Admin       // the person: the socket, the API key, or a session of the web UI
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

// Authenticator tells actors apart. It keeps the hash of the key, not the key.
type Authenticator struct {
	SignIns SignIns

	hash   [sha256.Size]byte
	hasKey bool
}

// New makes an Authenticator for the API key. With an empty key no key is the
// right one.
func New(key string) *Authenticator {
	return &Authenticator{hash: sha256.Sum256([]byte(key)), hasKey: key != ""}
}

// Actor returns who made the request: the admin when it came over the socket or
// presents the key, nobody when it presents anything else in the place of a
// key, and else an agent. Presenting is sending an X-API-Key header or an
// Authorization header of the scheme Bearer, whatever is in it; where several
// are sent each must be right.
func (a *Authenticator) Actor(r *http.Request) Actor {
	if FromSocket(r.Context()) {
		return Actor{Kind: Admin}
	}
	presented, right := 0, 0
	check := func(key string) {
		presented++
		if a.Matches(key) {
			right++
		}
	}
	for _, key := range r.Header["X-Api-Key"] {
		check(key)
	}
	for _, value := range r.Header["Authorization"] {
		if key, ok := bearer(value); ok {
			check(key)
		}
	}
	switch {
	case presented == 0:
		return Actor{Kind: Agent}
	case right == presented:
		return Actor{Kind: Admin}
	}
	return Actor{}
}

// Matches reports whether this is the key. It compares hashes, so that neither the
// bytes nor the length of the key show in the time it takes.
func (a *Authenticator) Matches(key string) bool {
	hash := sha256.Sum256([]byte(strings.TrimSpace(key)))
	return subtle.ConstantTimeCompare(hash[:], a.hash[:]) == 1 && a.hasKey
}

// bearer returns the token of an Authorization value of the scheme Bearer.
func bearer(value string) (string, bool) {
	scheme, token, _ := strings.Cut(strings.TrimSpace(value), " ")
	return token, strings.EqualFold(scheme, "Bearer")
}

type socketKey struct{}

// WithSocket marks ctx as that of a connection over the unix socket, which
// only the person can open (mode 0600).
func WithSocket(ctx context.Context) context.Context {
	return context.WithValue(ctx, socketKey{}, true)
}

// FromSocket reports whether ctx was marked by WithSocket.
func FromSocket(ctx context.Context) bool {
	marked, _ := ctx.Value(socketKey{}).(bool)
	return marked
}

// ConnContext is for http.Server.ConnContext: it marks the connections that
// came in over a unix socket. What a request says plays no part in it.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	if addr := c.LocalAddr(); addr != nil && addr.Network() == "unix" {
		return WithSocket(ctx)
	}
	return ctx
}
