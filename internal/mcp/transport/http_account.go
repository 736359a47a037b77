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
	// HandleRefusal handles a 401 or 403 and its challenge. used is the rejected header. It reports whether another
	// authorization is available, so that a retry makes sense.
	HandleRefusal(ctx context.Context, used string, status int, challenge string) bool
}

// authClient adds the authorization of an account. It retries a rejected request once with a new authorization, because
// the server has not executed the request.
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
	for again := false; ; again = true {
		auth, err := p.account.Authorization(ctx)
		if err != nil {
			return nil, newNotSentError(fmt.Errorf("authenticate: %w", err))
		}
		sent := r
		if auth != "" { // avoids a copy for servers without authorization
			proof := *r
			proof.auth = auth
			sent = &proof
		}
		a, err := p.HTTPClient.Do(ctx, sent)
		if err != nil || a.Status != http.StatusUnauthorized && a.Status != http.StatusForbidden {
			return a, err
		}
		if !p.account.HandleRefusal(ctx, auth, a.Status, a.Challenge) || again {
			return a, nil
		}
		a.Body.Close()
	}
}
