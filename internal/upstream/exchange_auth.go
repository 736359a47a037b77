package upstream

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"mcpproxy/internal/reach"
)

// Account proves to one server who asks. Its methods may be called at the same
// time.
type Account interface {
	// Authorization gives the value of the Authorization header, "" when there
	// is none. It may take the time of a renewal.
	Authorization(ctx context.Context) (string, error)
	// Refused is told that the server answered a request with 401 or 403 and a
	// challenge; used is the authorization it carried. It says whether another
	// one is there now, so that the request is worth sending again.
	Refused(ctx context.Context, used string, status int, challenge string) bool
}

// account is what proves to the server of spec who asks. The configuration's
// own Authorization, or the user of its URL, goes first.
func (s *Set) account(spec *Spec) Account {
	if s.opt.Account == nil || spec.Proves() {
		return nil
	}
	return s.opt.Account(spec.Name)
}

// Proves says whether the launch itself says who asks.
func (s *Spec) Proves() bool {
	for name := range s.Headers {
		if http.CanonicalHeaderKey(name) == "Authorization" {
			return true
		}
	}
	u, err := url.Parse(s.URL)
	return err == nil && u.User != nil
}

// reach is what may be dialled for the server: what its URL says by itself, and
// else the internet, unless the configuration allows more.
func (s *Spec) reach(u *url.URL) reach.Rule { return reach.For(u.Hostname(), s.AllowPrivate) }

// proving adds the account's authorization to each request. A request that is
// refused is sent once more when there is another authorization: the server
// has not acted on it.
type proving struct {
	exchanger
	account Account
}

// proven is client with the authorization of the account, if there is one.
func proven(client exchanger, account Account) exchanger {
	if account == nil {
		return client
	}
	return &proving{client, account}
}

func (p *proving) do(ctx context.Context, r *exchange) (*answer, error) {
	for again := false; ; again = true {
		auth, err := p.account.Authorization(ctx)
		if err != nil {
			return nil, &unsentError{fmt.Errorf("prove who asks: %w", err)}
		}
		sent := r
		if auth != "" { // nothing is copied for servers that ask for none
			proof := *r
			proof.auth = auth
			sent = &proof
		}
		a, err := p.exchanger.do(ctx, sent)
		if err != nil || a.status != http.StatusUnauthorized && a.status != http.StatusForbidden {
			return a, err
		}
		if !p.account.Refused(ctx, auth, a.status, a.challenge) || again {
			return a, nil
		}
		a.body.Close()
	}
}
