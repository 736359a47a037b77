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

// Authenticator tells actors apart. It keeps the hash of the key, not the key.
type Authenticator struct {
	SignIns SignIns

	tokens *Tokens
	hash   [sha256.Size]byte
	hasKey bool
}

// New makes an Authenticator for the API key and the tokens (nil: there are none).
// With an empty key no key is the right one.
func New(key string, tokens *Tokens) *Authenticator {
	return &Authenticator{tokens: tokens, hash: sha256.Sum256([]byte(key)), hasKey: key != ""}
}

// Actor returns who made the request: the admin when it came over the socket or
// presents the key, an agent with a name when it presents a token, which is then
// returned, too, nobody when it presents anything else in the place of them, and else
// an agent. Presenting is sending an X-API-Key header or an Authorization header of
// the scheme Bearer, whatever is in it; where several are sent each must be right, and
// prove the same. The error is ErrTokensUnread, for nobody.
func (a *Authenticator) Actor(r *http.Request) (who Actor, token *Held, err error) {
	if FromSocket(r.Context()) {
		return Actor{Kind: Admin}, nil, nil
	}
	presented, right := 0, true
	check := func(text string) {
		one, held, unread := a.prove(r.Context(), strings.TrimSpace(text))
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

// prove returns whom a text proves.
func (a *Authenticator) prove(ctx context.Context, text string) (Actor, *Held, error) {
	if a.Matches(text) {
		return Actor{Kind: Admin}, nil, nil
	}
	held, err := a.tokens.find(ctx, text)
	if held == nil {
		return Actor{}, nil, err
	}
	return held.actor(), held, nil
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
