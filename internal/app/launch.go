package app

import (
	"sync"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/mcp/transport"
	"mcpproxy/internal/upstream"
	"mcpproxy/internal/upstream/oauth"
)

// launcher has those servers running that may run by the configuration and the
// decisions in force. It follows both.
type launcher struct {
	config    func() *config.Config
	book      *approval.Book
	logins    *oauth.Accounts
	upstreams *upstream.Set
	secrets   *secretValues

	mu sync.Mutex // held while the servers that may run are made those that do
}

// newLauncher makes a launcher, which starts servers once the decisions are read.
func newLauncher(live func() *config.Config, book *approval.Book, logins *oauth.Accounts, upstreams *upstream.Set, secrets *secretValues) *launcher {
	l := &launcher{config: live, book: book, logins: logins, upstreams: upstreams, secrets: secrets}
	secrets.changed = l.apply
	book.Follow(func(approval.Decided) { l.launch() })
	return l
}

// Prepare implements config.Component. At the commit the new configuration is the
// one in force.
func (l *launcher) Prepare(*config.Config) (func(), error) { return l.launch, nil }

func (l *launcher) launch() {
	select {
	case <-l.book.Loaded():
	default: // until the decisions are read it is not known which servers may run, and requests wait
		return
	}
	var names []string
	for _, s := range startable(l.config(), l.book) {
		names = append(names, s.SecretNames()...)
	}
	l.secrets.want(names)
	l.apply()
}

// apply is launch with the secrets that are known, once there has been one.
func (l *launcher) apply() {
	l.mu.Lock()
	defer l.mu.Unlock()
	cfg := l.config()
	servers := startable(cfg, l.book)
	var wanted []upstream.Spec
	for i, s := range servers {
		revealed, err := s.Reveal(l.secrets.value)
		servers[i] = revealed
		spec := specOf(cfg, revealed, l.book)
		if err != nil {
			spec.MissingReason, spec.MissingVariable = err.Error(), s.NeedsVariable()
		}
		wanted = append(wanted, spec)
	}
	l.logins.Configure(targets(servers, wanted))
	l.upstreams.Apply(wanted)
}

// startable are the servers that may be started or contacted.
func startable(cfg *config.Config, book *approval.Book) (all []config.Server) {
	for _, s := range cfg.Servers {
		if catalog.MayStart(s, book.View(s.Name)) {
			all = append(all, s)
		}
	}
	return all
}

// specOf is how a server is launched.
func specOf(cfg *config.Config, s config.Server, book *approval.Book) upstream.Spec {
	return upstream.Spec{
		Name: s.Name, Transport: upstream.Transport(s.Protocol),
		Command: s.Command, Args: s.Args, Env: s.Env, Dir: s.WorkingDir,
		URL: s.URL, Headers: s.Headers, AllowPrivate: s.AllowPrivate, ConnectTimeout: cfg.ConnectTimeout, Secrets: s.Secrets(),
		Review:      catalog.Quarantined(s, book.View(s.Name)),
		IdleTimeout: cfg.IdleTimeout, Lazy: s.Lazy, TrySSE: s.TrySSE,
		Shared: s.Session == config.SessionShared,
	}
}

// targets are those of the servers that may ask for a login: over HTTP, and
// with nothing in the configuration that says who asks.
func targets(configs []config.Server, servers []upstream.Spec) []oauth.Target {
	configured := map[string]config.OAuth{}
	for _, s := range configs {
		configured[s.Name] = s.OAuth
	}
	var all []oauth.Target
	for _, s := range servers {
		if s.Transport != upstream.Stdio && s.MissingReason == "" && !s.HasCredentials() {
			all = append(all, oauth.Target{Name: s.Name, URL: s.URL, AllowPrivate: s.AllowPrivate, Settings: oauth.Settings(configured[s.Name])})
		}
	}
	return all
}

// account returns what finds the account at a server, without the nil of a type
// in it.
func account(logins *oauth.Accounts) func(server string) transport.Account {
	return func(server string) transport.Account {
		if a := logins.Account(server); a != nil {
			return a
		}
		return nil
	}
}
