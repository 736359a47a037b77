package auth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net"
	"net/http"
	"strings"
)

// Authenticator identifies actors. It stores the hash of the key, not the key.
type Authenticator struct {
	SignIns SignIns

	tokens *Tokens
	hash   [sha256.Size]byte
	hasKey bool
}

// New returns an Authenticator for the API key and the tokens (nil: none). With an empty
// key no key is valid.
func New(key string, tokens *Tokens) *Authenticator {
	return &Authenticator{tokens: tokens, hash: sha256.Sum256([]byte(key)), hasKey: key != ""}
}

// Actor returns the caller of a request: the admin over the socket or with the key, a
// named agent with a token, which is also returned, no one with an invalid credential,
// and else an agent. A credential is any X-API-Key header or Bearer Authorization header;
// if there are several, each must be valid for the same actor. The error is
// ErrTokensUnread, with no one as actor.
func (a *Authenticator) Actor(r *http.Request) (who Actor, token *ActiveToken, err error) {
	if FromSocket(r.Context()) {
		return Actor{Kind: Admin}, nil, nil
	}
	presented, right := 0, true
	check := func(text string) {
		one, held, unread := a.identify(r.Context(), strings.TrimSpace(text))
		right = right && one.Kind != Nobody && (presented == 0 || one == who)
		who, token, err = one, held, errors.Join(err, unread)
		presented++
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
		return Actor{Kind: Agent}, nil, nil
	case right:
		return who, token, nil
	}
	return Actor{}, nil, err
}

// identify returns the actor of a credential.
func (a *Authenticator) identify(ctx context.Context, text string) (Actor, *ActiveToken, error) {
	if a.Matches(text) {
		return Actor{Kind: Admin}, nil, nil
	}
	held, err := a.tokens.find(ctx, text)
	if held == nil {
		return Actor{}, nil, err
	}
	return held.actor(), held, nil
}

// Matches reports whether this is the key. It compares hashes, so that timing reveals
// neither the bytes nor the length of the key.
func (a *Authenticator) Matches(key string) bool {
	hash := sha256.Sum256([]byte(strings.TrimSpace(key)))
	return subtle.ConstantTimeCompare(hash[:], a.hash[:]) == 1 && a.hasKey
}

// bearer returns the token of a Bearer Authorization value.
func bearer(value string) (string, bool) {
	scheme, token, _ := strings.Cut(strings.TrimSpace(value), " ")
	return token, strings.EqualFold(scheme, "Bearer")
}

type socketKey struct{}

// WithSocket marks ctx as that of a connection over the unix socket, which only the user
// can open (mode 0600).
func WithSocket(ctx context.Context) context.Context {
	return context.WithValue(ctx, socketKey{}, true)
}

// FromSocket reports whether ctx was marked by WithSocket.
func FromSocket(ctx context.Context) bool {
	marked, _ := ctx.Value(socketKey{}).(bool)
	return marked
}

// ConnContext is for http.Server.ConnContext: it marks connections over a unix socket.
// Request data plays no part in it.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	if addr := c.LocalAddr(); addr != nil && addr.Network() == "unix" {
		return WithSocket(ctx)
	}
	return ctx
}
