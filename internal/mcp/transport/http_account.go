package transport

import (
	"context"
	"fmt"
	"net/http"
)

// Account proves to one server who asks. Its methods may be called at the same
// time.
type Account interface {
	// Authorization returns the value of the Authorization header, "" when there
	// is none. It may take the time of a renewal.
	Authorization(ctx context.Context) (string, error)
	// Refused is told that the server answered a request with 401 or 403 and a
	// challenge; used is the authorization it carried. It reports whether
	// another one is there now, so that the request is worth sending again.
	Refused(ctx context.Context, used string, status int, challenge string) bool
}

// proving adds the account's authorization to each request. A request that is
// refused is sent once more when there is another authorization: the server
// has not acted on it.
type proving struct {
	Client
	account Account
}

// proven returns client with the authorization of the account, if there is one.
func proven(client Client, account Account) Client {
	if account == nil {
		return client
	}
	return &proving{client, account}
}

func (p *proving) Do(ctx context.Context, r *Request) (*Response, error) {
	for again := false; ; again = true {
		auth, err := p.account.Authorization(ctx)
		if err != nil {
			return nil, requestNotSent(fmt.Errorf("prove who asks: %w", err))
		}
		sent := r
		if auth != "" { // nothing is copied for servers that ask for none
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
