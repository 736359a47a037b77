package upstream

import (
	"net/http"
	"net/url"

	"mcpproxy/internal/reach"
	"mcpproxy/internal/wire"
)

// Account proves to one server who asks.
type Account = wire.Account

// account is what proves to the server of spec who asks. The configuration's
// own Authorization, or the user of its URL, goes first.
func (s *Set) account(spec *Spec) wire.Account {
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

// dial returns a client for the server's address.
func (s *Spec) dial(u *url.URL) (wire.Client, error) { return wire.NewClient(u, s.reach(u)) }
