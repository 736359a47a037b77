package app

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"sync"
	"time"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/transport"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/upstream"
	"mcpproxy/internal/upstream/compat"
	"mcpproxy/internal/upstream/oauth"
	"mcpproxy/internal/upstream/pin"
	"mcpproxy/internal/upstream/process"
	"mcpproxy/internal/upstream/sandbox"
)

// launcher runs the servers that the configuration and the approvals allow, and follows changes of both.
type launcher struct {
	config    func() *config.Config
	book      *approval.Book
	logins    *oauth.Accounts
	upstreams *upstream.Set
	secrets   *secretCache
	needs     *learnedNeeds
	packages  string // folder of the installed packages
	sandboxes *sandbox.System

	mu sync.Mutex // held while the servers are applied
}

// newLauncher returns a launcher. It starts servers once the approvals are loaded.
func newLauncher(packages string, sandboxes *sandbox.System, live func() *config.Config, book *approval.Book, logins *oauth.Accounts, upstreams *upstream.Set, secrets *secretCache, needs *learnedNeeds) *launcher {
	l := &launcher{config: live, book: book, logins: logins, upstreams: upstreams, secrets: secrets, needs: needs, packages: packages, sandboxes: sandboxes}
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
		spec := l.newUpstreamSpec(cfg, revealed)
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
func (l *launcher) newUpstreamSpec(cfg *config.Config, s config.Server) upstream.Spec {
	spec := upstream.Spec{
		Name: s.Name, Transport: upstream.Transport(s.Protocol),
		Command: s.Command, Args: s.Args, Env: s.Env, Dir: s.WorkingDir, Sandbox: s.Sandbox,
		URL: s.URL, Headers: s.Headers, AllowPrivate: s.AllowPrivate, ConnectTimeout: cfg.ConnectTimeout, Secrets: s.SecretValues(),
		Review:      catalog.IsQuarantined(s, l.book.ServerView(s.Name)),
		IdleTimeout: cfg.IdleTimeout, Lazy: s.Lazy, TrySSE: s.TrySSE,
		Shared: s.Session == config.SessionShared, Auto: s.Session == config.SessionAuto,
	}
	if s.Pin != "" {
		spec.Command, spec.Args = l.pinnedCommand(s)
		if s.Sandbox.IsOn() {
			spec.Pin = s.Pin
		}
	}
	return spec
}

// pinnedCommand returns the command that starts the pinned version of a server. If the pin does not fit the command, it
// returns one that fails with the reason.
func (l *launcher) pinnedCommand(s config.Server) (command string, args []string) {
	program, err := os.Executable()
	if err != nil {
		program = os.Args[0]
	}
	if p, err := pin.Parse(s.Pin); err == nil && s.Sandbox.IsOn() && p.Kind != pin.Docker {
		if command, args, err = pin.Exact(p, s.Command, s.Args); err == nil {
			return command, args
		}
	} else if err == nil {
		if command, args, err = pin.Pinned(p, program, l.packages, s.Command, s.Args); err == nil {
			return command, args
		}
	}
	return program, append([]string{pin.Command, s.Pin, l.packages, s.Command}, s.Args...)
}

// Environ returns the environment of the processes of a server.
func (l *launcher) Environ(s config.Server) ([]string, error) {
	revealed, err := s.ResolveSecrets(l.secrets.valueFor)
	return process.Environment(revealed.Env), err
}

// ListDefinitions starts a server next to the running ones, and returns what it lists. It has its own processes, and no
// client reaches it.
func (l *launcher) ListDefinitions(ctx context.Context, s config.Server) (all []ops.TrialDefinition, err error) {
	revealed, err := s.ResolveSecrets(l.secrets.valueFor)
	if err != nil {
		return nil, err
	}
	spec := l.newUpstreamSpec(l.config(), revealed)
	spec.Lazy, spec.IdleTimeout, spec.Review, spec.Auto = false, 0, true, false
	seen := &trialObserver{changed: make(chan struct{}, 1)}
	set := compat.NewServerSet(upstream.Options{Observer: seen, MaxMessage: maxMessage, Sandboxes: l.sandboxes})
	defer func() { err = errors.Join(err, set.Close(context.WithoutCancel(ctx))) }()
	set.ApplySpecs([]upstream.Spec{spec})
	state, tools, err := seen.awaitReady(ctx)
	if err != nil {
		return nil, err
	}
	add := func(kind tool.DefinitionKind, raw json.RawMessage) {
		if d, err := ops.ParseTrialDefinition(s.Name, kind, raw); err == nil { // the server's list leaves out the others, too
			all = append(all, d)
		}
	}
	for _, t := range tools {
		add(tool.KindTool, t.Raw)
	}
	if state.Instructions != "" {
		add(tool.KindInstructions, wirejson.AppendString(nil, state.Instructions))
	}
	for _, list := range []struct {
		kind                       tool.DefinitionKind
		capability, method, member string
	}{
		{tool.KindPrompt, "prompts", mcp.ListPrompts, "prompts"}, {tool.KindResource, "resources", mcp.ListResources, "resources"},
		{tool.KindTemplate, "resources", mcp.ListTemplates, "resourceTemplates"},
	} {
		if wirejson.Kind(wirejson.Find(state.Capabilities, list.capability)) != '{' {
			continue
		}
		raws, err := set.ListPrimitives(ctx, s.Name, list.method, list.member)
		if err != nil && !upstream.ServerAnswered(err) {
			return nil, err
		}
		for _, raw := range raws {
			add(list.kind, raw)
		}
	}
	return all, nil
}

// trialTimeout limits how long a trial may take to install and to start.
const trialTimeout = 5 * time.Minute

// trialObserver observes the server of a trial.
type trialObserver struct {
	changed chan struct{} // receives a value after a change

	mu    sync.Mutex // guards the following fields
	state upstream.State
	tools []*tool.Definition
}

func (o *trialObserver) StateChanged(s upstream.State) {
	o.mu.Lock()
	o.state = s
	o.mu.Unlock()
	select {
	case o.changed <- struct{}{}:
	default:
	}
}

func (o *trialObserver) ToolsListed(_ string, tools []*tool.Definition) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tools = tools
}

// awaitReady waits until the server has listed its tools, or has failed.
func (o *trialObserver) awaitReady(ctx context.Context) (upstream.State, []*tool.Definition, error) {
	ctx, cancel := context.WithTimeout(ctx, trialTimeout)
	defer cancel()
	for {
		o.mu.Lock()
		state, tools := o.state, o.tools
		o.mu.Unlock()
		switch state.Phase {
		case upstream.Ready:
			return state, tools, nil
		case upstream.Failed:
			return state, nil, errors.New(state.LastError)
		}
		select {
		case <-o.changed:
		case <-ctx.Done():
			return state, nil, ctx.Err()
		}
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
