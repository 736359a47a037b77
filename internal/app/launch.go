package app

import (
	"sync"

	"mcpproxy/internal/approval"
	"mcpproxy/internal/catalog"
	"mcpproxy/internal/config"
	"mcpproxy/internal/oauth"
	"mcpproxy/internal/upstream"
	"mcpproxy/internal/wire"
)

// launcher has those servers running that may run by the configuration and the
// decisions in force. It follows both.
type launcher struct {
	config    func() *config.Config
	book      *approval.Book
	logins    *oauth.Keeper
	upstreams *upstream.Set

	mu sync.Mutex // held while the servers that may run are made those that do
}

// newLauncher makes a launcher, which starts servers once the decisions are read.
func newLauncher(live func() *config.Config, book *approval.Book, logins *oauth.Keeper, upstreams *upstream.Set) *launcher {
	l := &launcher{config: live, book: book, logins: logins, upstreams: upstreams}
	book.Follow(func(approval.Decided) { l.launch() })
	return l
}

// Prepare implements config.Component. At the commit the new configuration is the
// one in force.
func (l *launcher) Prepare(*config.Config) (func(), error) { return l.launch, nil }

func (l *launcher) launch() {
	l.mu.Lock()
	defer l.mu.Unlock()
	cfg := l.config()
	wanted := specs(cfg, l.book)
	l.logins.Configure(targets(cfg, wanted))
	l.upstreams.Apply(wanted)
}

// specs are the servers that may be started or contacted, as they are launched.
func specs(cfg *config.Config, book *approval.Book) []upstream.Spec {
	var all []upstream.Spec
	for _, s := range cfg.Servers {
		if !catalog.MayStart(s, book.View(s.Name)) {
			continue
		}
		all = append(all, upstream.Spec{
			Name: s.Name, Transport: upstream.Transport(s.Protocol),
			Command: s.Command, Args: s.Args, Env: s.Env, Dir: s.WorkingDir,
			URL: s.URL, Headers: s.Headers, AllowPrivate: s.AllowPrivate, ConnectTimeout: cfg.ConnectTimeout, Secrets: s.Secrets(),
			Review:      catalog.Quarantined(s, book.View(s.Name)),
			IdleTimeout: cfg.IdleTimeout, Lazy: s.Lazy, TrySSE: s.TrySSE,
			Shared: s.Session == config.SessionShared,
		})
	}
	return all
}

// targets are those of the servers that may ask for a login: over HTTP, and
// with nothing in the configuration that says who asks.
func targets(cfg *config.Config, servers []upstream.Spec) []oauth.Target {
	configured := map[string]config.OAuth{}
	for _, s := range cfg.Servers {
		configured[s.Name] = s.OAuth
	}
	var all []oauth.Target
	for _, s := range servers {
		if s.Transport != upstream.Stdio && !s.Proves() {
			all = append(all, oauth.Target{Name: s.Name, URL: s.URL, AllowPrivate: s.AllowPrivate, Settings: oauth.Settings(configured[s.Name])})
		}
	}
	return all
}

// account returns what finds the account at a server, without the nil of a type
// in it.
func account(logins *oauth.Keeper) func(server string) wire.Account {
	return func(server string) wire.Account {
		if a := logins.Account(server); a != nil {
			return a
		}
		return nil
	}
}
