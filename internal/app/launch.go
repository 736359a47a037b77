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
	"mcpproxy/internal/gate/classify"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/transport"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
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

// prunePackages removes the installed packages that no server starts and none can roll back to. No server runs yet.
func (d *daemon) prunePackages(packages string, cfg *config.Config) {
	var pins []string
	for _, s := range cfg.Servers {
		pins = append(append(pins, s.Pin), s.PreviousPins...)
	}
	deleteFiles := pin.Prune(packages, pins)
	d.running.Go(func() {
		if err := deleteFiles(); err != nil {
			d.logger.Warn("packages that no server needs could not be deleted", "error", err)
		}
	})
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
	set, seen, err := l.startTrial(s, "")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, set.Close(context.WithoutCancel(ctx))) }()
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

// startTrial starts a server next to the running ones. It logs to logDir; "" keeps no log.
func (l *launcher) startTrial(s config.Server, logDir string) (*compat.ServerSet, *trialObserver, error) {
	revealed, err := s.ResolveSecrets(l.secrets.valueFor)
	if err != nil {
		return nil, nil, err
	}
	spec := l.newUpstreamSpec(l.config(), revealed)
	spec.Lazy, spec.IdleTimeout, spec.Review, spec.Auto = false, 0, true, false
	seen := &trialObserver{changed: make(chan struct{}, 1)}
	set := compat.NewServerSet(upstream.Options{Observer: seen, MaxMessage: maxMessage, Sandboxes: l.sandboxes, LogDir: logDir})
	set.ApplySpecs([]upstream.Spec{spec})
	return set, seen, nil
}

// trialLogLines is the number of lines of the log of a trial that are read.
const trialLogLines = 2000

// TrySandbox starts a server in a sandbox next to the running ones, lists its tools and stops it.
func (l *launcher) TrySandbox(ctx context.Context, s config.Server, r sandbox.Rules) (t sandbox.Trial) {
	dir, err := os.MkdirTemp("", "mcpproxy-trial-")
	if err != nil {
		return sandbox.Trial{Err: err}
	}
	defer os.RemoveAll(dir)
	s.Sandbox = r
	set, seen, err := l.startTrial(s, dir)
	if err != nil {
		return sandbox.Trial{Err: err}
	}
	state, tools, err := seen.awaitReady(ctx)
	if closeErr := set.Close(context.WithoutCancel(ctx)); closeErr != nil || ctx.Err() != nil {
		return sandbox.Trial{Err: errors.Join(ctx.Err(), closeErr)}
	}
	if t.Ready = err == nil; !t.Ready {
		t.Failure = err.Error()
	}
	if state.Failure.Code == upstream.NoSandbox {
		return sandbox.Trial{Err: err}
	}
	lines, _ := process.NewLogReader(dir, s.Name).ReadLast(trialLogLines)
	for _, line := range lines {
		t.Output += line.Text + "\n"
	}
	for _, d := range tools {
		if t.Writer == "" && changesThings(d) {
			t.Writer = problem.ClipName(d.ID.Tool)
		}
		if t.Reacher == "" && reachesOut(d) {
			t.Reacher = problem.ClipName(d.ID.Tool)
		}
	}
	return t
}

// changesThings reports whether a tool says that it changes things, or clearly does without saying so.
func changesThings(d *tool.Definition) bool {
	inferred := classify.InferHints(*d)
	return d.Hints.ReadOnly == tool.False || d.Hints.Destructive == tool.True ||
		d.Hints.ReadOnly == tool.Unset && inferred.Operation != policy.Read && !inferred.Unsure
}

// reachesOut reports whether a tool says that it reaches other systems, or takes a URL without saying that it does not.
func reachesOut(d *tool.Definition) bool {
	return d.Hints.OpenWorld == tool.True || d.Hints.OpenWorld == tool.Unset && len(wirejson.Find(wirejson.Find(d.InputSchema, "properties"), "url")) > 0
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
