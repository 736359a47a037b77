package transport

import (
	"context"
	"fmt"
	"net/http"
)

// Account authenticates MCPProxy to one server. Its methods are safe for concurrent use.
type Account interface {
	// Authorization returns the Authorization header, "" for none. It may wait for a token refresh.
	Authorization(ctx context.Context) (string, error)
	// Refused reports a 401 or 403 and its challenge; used is the rejected header. It returns whether
	// another authorization is available, so that a retry makes sense.
	Refused(ctx context.Context, used string, status int, challenge string) bool
}

// authClient adds the authorization of an account. It retries a refused request once with a new
// authorization: the server has not executed it.
type authClient struct {
	Client
	account Account
}

// withAccount returns client with the authorization of the account, if any.
func withAccount(client Client, account Account) Client {
	if account == nil {
		return client
	}
	return &authClient{client, account}
}

func (p *authClient) Do(ctx context.Context, r *Request) (*Response, error) {
	for again := false; ; again = true {
		auth, err := p.account.Authorization(ctx)
		if err != nil {
			return nil, requestNotSent(fmt.Errorf("prove who asks: %w", err))
		}
		sent := r
		if auth != "" { // no copy for servers without authorization
			proof := *r
			proof.auth = auth
			sent = &proof
		}
		a, err := p.Client.Do(ctx, sent)
		if err != nil || a.Status != http.StatusUnauthorized && a.Status != http.StatusForbidden {
			return a, err
		}
		if !p.account.Refused(ctx, auth, a.Status, a.Challenge) || again {
			return a, nil
		}
		a.Body.Close()
	}
}
