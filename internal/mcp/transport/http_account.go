package transport

import (
	"context"
	"fmt"
	"net/http"
)

// ServerAuthorizer authenticates MCPProxy to one server. Its methods are safe for concurrent use.
type ServerAuthorizer interface {
	// Authorization returns the Authorization header, or "" if there is none. It may wait for a token refresh.
	Authorization(ctx context.Context) (string, error)
	// HandleRefusal handles a 401 or 403 and its challenge. used is the rejected header. It reports whether a retry
	// makes sense, usually because another authorization is available. It may wait.
	HandleRefusal(ctx context.Context, used string, status int, challenge string) bool
	// HandleAcceptance handles a response with a status of 2xx to a request with the header used. Other responses do not
	// prove that the server accepts the token.
	HandleAcceptance(used string)
}

// authClient adds the authorization of an account. It retries a rejected request, because the server has not executed
// it: with a new authorization, and once more if that one may not be valid yet.
type authClient struct {
	HTTPClient
	account ServerAuthorizer
}

// wrapWithAuthorization returns client with the authorization of the account, if any.
func wrapWithAuthorization(client HTTPClient, account ServerAuthorizer) HTTPClient {
	if account == nil {
		return client
	}
	return &authClient{client, account}
}

func (p *authClient) Do(ctx context.Context, r *HTTPRequest) (*HTTPResponse, error) {
	const retries = 2
	for sends := 0; ; sends++ {
		auth, err := p.account.Authorization(ctx)
		if err != nil {
			return nil, newNotSentError(&AuthorizationError{err})
		}
		sent := r
		if auth != "" { // avoids a copy for servers without authorization
			proof := *r
			proof.auth = auth
			sent = &proof
		}
		a, err := p.HTTPClient.Do(ctx, sent)
		if err != nil {
			return nil, err
		}
		if a.Status != http.StatusUnauthorized && a.Status != http.StatusForbidden {
			if 200 <= a.Status && a.Status <= 299 {
				p.account.HandleAcceptance(auth)
			}
			return a, nil
		}
		if !p.account.HandleRefusal(ctx, auth, a.Status, a.Challenge) || sends == retries {
			return a, nil
		}
		a.Body.Close()
	}
}

// AuthorizationError is the error for a request that was not sent, because the login to the server could not be
// renewed.
type AuthorizationError struct{ Cause error }

func (e *AuthorizationError) Error() string { return fmt.Sprintf("authenticate: %v", e.Cause) }
func (e *AuthorizationError) Unwrap() error { return e.Cause }
