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
	SignIns WebUISignIns
	// Users identifies users by their access tokens; nil: there are none.
	Users UserVerifier

	tokens *AgentTokens
	hash   [sha256.Size]byte
	hasKey bool
}

// NewAuthenticator returns an Authenticator for the API key and the tokens (nil: none). If key is empty, no key is
// valid.
func NewAuthenticator(key string, tokens *AgentTokens) *Authenticator {
	return &Authenticator{tokens: tokens, hash: sha256.Sum256([]byte(key)), hasKey: key != ""}
}

// IdentifyRequest returns the caller of a request, and its token if it has one. A request over the socket or with the
// key is from the admin, one with a token from the token's agent, and one without a credential from an agent. A
// request with an invalid credential is from Nobody. A credential is any X-API-Key header or Bearer Authorization
// header; several credentials must all be valid for the same actor. The error is ErrTokensUnread,
// ErrProviderAway or a *TokenRefusal, and the actor is then Nobody.
func (a *Authenticator) IdentifyRequest(r *http.Request) (who Actor, token *LoadedToken, err error) {
	if IsFromSocket(r.Context()) {
		return Actor{Kind: Admin}, nil, nil
	}
	presented, right := 0, true
	check := func(text string) {
		one, held, unread := a.identifyCredential(r, strings.TrimSpace(text))
		right = right && one.Kind != Nobody && (presented == 0 || one == who)
		who, token, err = one, held, errors.Join(err, unread)
		presented++
	}
	for _, key := range r.Header["X-Api-Key"] {
		check(key)
	}
	for _, value := range r.Header["Authorization"] {
		if key, ok := parseBearer(value); ok {
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

// identifyCredential returns the actor of a credential.
func (a *Authenticator) identifyCredential(r *http.Request, text string) (Actor, *LoadedToken, error) {
	if a.IsAPIKey(text) {
		return Actor{Kind: Admin}, nil, nil
	}
	if a.Users != nil {
		if held, handled, err := a.Users.VerifyUser(r.Context(), r.URL.Path, text); handled {
			if err != nil {
				return Actor{}, nil, err
			}
			return held.Actor(), held, nil
		}
	}
	held, err := a.tokens.findActiveAndMarkUsed(r.Context(), text)
	if held == nil {
		return Actor{}, nil, err
	}
	return held.Actor(), held, nil
}

// UserChallenge returns the WWW-Authenticate value that tells a client how users sign in at this path; "" if they
// cannot.
func (a *Authenticator) UserChallenge(path string, refusal *TokenRefusal) string {
	if a.Users == nil {
		return ""
	}
	return a.Users.Challenge(path, refusal)
}

// IsAPIKey reports whether key is the API key. It compares hashes, so that timing reveals neither the bytes nor the
// length of the key.
func (a *Authenticator) IsAPIKey(key string) bool {
	hash := sha256.Sum256([]byte(strings.TrimSpace(key)))
	return subtle.ConstantTimeCompare(hash[:], a.hash[:]) == 1 && a.hasKey
}

// CredentialHash identifies the current credential of an actor: its token, the API key, or none.
func (a *Authenticator) CredentialHash(who Actor) [sha256.Size]byte {
	text := []byte(who.Principal())
	if who.Kind == Admin {
		text = append(append(text, '\n'), a.hash[:]...)
	}
	return sha256.Sum256(text)
}

// parseBearer returns the token of a Bearer Authorization value.
func parseBearer(value string) (string, bool) {
	scheme, token, _ := strings.Cut(strings.TrimSpace(value), " ")
	return token, strings.EqualFold(scheme, "Bearer")
}

type socketMarkKey struct{}

// WithSocketMark marks ctx as the context of a connection over the unix socket, which only the user can open (mode
// 0600).
func WithSocketMark(ctx context.Context) context.Context {
	return context.WithValue(ctx, socketMarkKey{}, true)
}

// IsFromSocket reports whether ctx was marked by WithSocketMark.
func IsFromSocket(ctx context.Context) bool {
	marked, _ := ctx.Value(socketMarkKey{}).(bool)
	return marked
}

// MarkSocketConn is for http.Server.ConnContext: it marks connections over a unix socket. It ignores the data of the
// request.
func MarkSocketConn(ctx context.Context, c net.Conn) context.Context {
	if addr := c.LocalAddr(); addr != nil && addr.Network() == "unix" {
		return WithSocketMark(ctx)
	}
	return ctx
}
