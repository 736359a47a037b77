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

// launcher runs the servers that the configuration and the approvals allow, and follows changes of both.
type launcher struct {
	config    func() *config.Config
	book      *approval.Book
	logins    *oauth.Accounts
	upstreams *upstream.Set
	secrets   *secretCache
	needs     *learnedNeeds

	mu sync.Mutex // held while the servers are applied
}

// newLauncher returns a launcher. It starts servers once the approvals are loaded.
func newLauncher(live func() *config.Config, book *approval.Book, logins *oauth.Accounts, upstreams *upstream.Set, secrets *secretCache, needs *learnedNeeds) *launcher {
	l := &launcher{config: live, book: book, logins: logins, upstreams: upstreams, secrets: secrets, needs: needs}
	secrets.changed = l.applyServers
	book.Subscribe(func(approval.DecisionEvent) { l.reconcileServers() })
	return l
}

// PrepareConfig implements config.Component. The returned function applies the new configuration.
func (l *launcher) PrepareConfig(*config.Config) (func(), error) { return l.reconcileServers, nil }

func (l *launcher) reconcileServers() {
	select {
	case <-l.book.LoadedChan():
	default: // the approvals are not loaded yet, so no server may start; requests wait
		return
	}
	var names []string
	for _, s := range startableServers(l.config(), l.book) {
		names = append(names, s.SecretNames()...)
	}
	for _, w := range l.config().Webhooks {
		names = append(names, w.SecretNames()...)
	}
	l.secrets.setWanted(names)
	l.needs.load()
	l.applyServers()
}

// applyServers applies the allowed servers with the known secrets.
func (l *launcher) applyServers() {
	l.mu.Lock()
	defer l.mu.Unlock()
	cfg := l.config()
	servers := startableServers(cfg, l.book)
	var wanted []upstream.Spec
	for i, s := range servers {
		revealed, err := s.ResolveSecrets(l.secrets.valueFor)
		servers[i] = revealed
		spec := newUpstreamSpec(cfg, revealed, l.book)
		spec.Needs = l.needs.needsOf(s.Name, s.LaunchFingerprint())
		if err != nil {
			spec.MissingReason, spec.MissingVariable = err.Error(), s.HasUnsetVariable()
		}
		wanted = append(wanted, spec)
	}
	l.logins.Configure(loginTargets(servers, wanted))
	l.upstreams.ApplySpecs(wanted)
}

// startableServers returns the servers that may be started or contacted.
func startableServers(cfg *config.Config, book *approval.Book) (all []config.Server) {
	for _, s := range cfg.Servers {
		if catalog.MayStartServer(s, book.ServerView(s.Name)) {
			all = append(all, s)
		}
	}
	return all
}

// newUpstreamSpec returns the launch specification of a server.
func newUpstreamSpec(cfg *config.Config, s config.Server, book *approval.Book) upstream.Spec {
	return upstream.Spec{
		Name: s.Name, Transport: upstream.Transport(s.Protocol),
		Command: s.Command, Args: s.Args, Env: s.Env, Dir: s.WorkingDir, Sandbox: s.Sandbox,
		URL: s.URL, Headers: s.Headers, AllowPrivate: s.AllowPrivate, ConnectTimeout: cfg.ConnectTimeout, Secrets: s.SecretValues(),
		Review:      catalog.IsQuarantined(s, book.ServerView(s.Name)),
		IdleTimeout: cfg.IdleTimeout, Lazy: s.Lazy, TrySSE: s.TrySSE,
		Shared: s.Session == config.SessionShared, Auto: s.Session == config.SessionAuto,
	}
}

// loginTargets returns the servers that may require a login: HTTP servers without configured credentials.
func loginTargets(configs []config.Server, servers []upstream.Spec) []oauth.AccountTarget {
	configured := map[string]config.OAuth{}
	for _, s := range configs {
		configured[s.Name] = s.OAuth
	}
	var all []oauth.AccountTarget
	for _, s := range servers {
		if s.Transport != upstream.Stdio && s.MissingReason == "" && !s.HasCredentials() {
			all = append(all, oauth.AccountTarget{Name: s.Name, URL: s.URL, AllowPrivate: s.AllowPrivate, Settings: oauth.Settings(configured[s.Name])})
		}
	}
	return all
}

// serverLoginLookup returns the function that finds the login of a server; an untyped nil for a server without one.
func serverLoginLookup(logins *oauth.Accounts) func(server string) transport.ServerAuthorizer {
	return func(server string) transport.ServerAuthorizer {
		if a := logins.Account(server); a != nil {
			return a
		}
		return nil
	}
}
