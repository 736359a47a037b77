// Package app runs the daemon: it opens files and listeners, creates and connects the packages, starts them, and stops them in reverse order.
//
// Files:
//   - app.go: opens, connects, runs and stops all parts
//   - http.go: listeners, routes, the check of Host and Origin, /readyz, /metrics
//   - certificate.go: the certificate of TLS, which follows its files
//   - loopback.go, data_files.go: loopback addresses for passkeys, a port in use, the lock and files of the data directory
//   - launch.go, secrets.go, session_needs.go: decide which servers run, read their secrets, and know which clients need a session of their own
//   - records.go: record events of servers, approvals and the configuration
//   - presence.go: presence: its anchor, and waiting for signatures
//   - instances.go: apply decisions of other instances; store decisions again in a new database
//   - clients.go: operations on the MCP clients of the account
//   - terminal.go: output for a user and the log
//   - gc.go: tunes the garbage collector
//
// Guarantees:
//   - MCPProxy answers before it contacts a server.
//   - Only one daemon uses a data directory.
//   - Nothing that it starts outlives Run.
//   - A stop finishes or rejects running calls and writes the spooled records to the database.
//
// It has no product logic of its own.
package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"mcpproxy/internal/api"
	"mcpproxy/internal/catalog"
	"mcpproxy/internal/config"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate"
	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/gate/ask"
	"mcpproxy/internal/gate/pause"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/gate/presence"
	"mcpproxy/internal/mcp/httpserver"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcpserver"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/ops/notify"
	"mcpproxy/internal/ops/telemetry"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store"
	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/upstream"
	"mcpproxy/internal/upstream/compat"
	"mcpproxy/internal/upstream/oauth"
	"mcpproxy/internal/upstream/process"
	"mcpproxy/internal/upstream/sandbox"
	"mcpproxy/internal/upstream/secret"
	"mcpproxy/internal/web"
)

// mcpserver asks for it with a type assertion.
var _ mcpserver.RefusalRecorder = (*gate.AggregateEndpoint)(nil)

// maxMessage limits one message of a server, in bytes.
const maxMessage = 16 << 20

// stopTimeout limits how long running calls, servers and the log each have to end.
const stopTimeout = 10 * time.Second

// installTimeout limits how long package managers have to end an installation and roll it back.
const installTimeout = stopTimeout + process.RollbackGrace

// finishTimeout is the part of stopTimeout in which calls can finish. Then they are rejected, and have the rest of it to send the error.
const finishTimeout = 8 * time.Second

// Options configures the daemon. Empty fields follow the environment, the configuration and the defaults.
type Options struct {
	ConfigPath string
	DataDir    string
	Listen     string
	// AnyPort listens on a free port of the loopback address when the configured one is in use. It is for a daemon that mainly
	// serves a client over the socket.
	AnyPort bool
	Version string
	// SampleServers are the servers that a user can add to try MCPProxy.
	SampleServers []ops.AddServerRequest
	Stderr        io.Writer
	// Terminal writes lines for a user to Stderr instead of the text log.
	Terminal bool
	// Abort, when it is closed, ends the daemon without waiting for calls and servers.
	Abort <-chan struct{}
	// Stopping, if set, is called with the reason why the stop waits.
	Stopping func(what string)
	// Ready, if set, is called once the daemon answers.
	Ready func(DaemonLocation)
}

// DaemonLocation contains the address and the files of a daemon.
type DaemonLocation struct {
	Address    string // of the HTTP listener, host:port
	Socket     string
	DataDir    string
	ConfigPath string
}

// daemon holds everything that runs. Fields are set in the order of opening.
type daemon struct {
	opt          Options
	started      time.Time
	live         *config.LiveConfig
	level        *slog.LevelVar
	logger       *slog.Logger
	terminal     *terminalHandler // writes for a user; nil for none
	key          string
	release      func() error  // unlocks the data directory
	spoolChecked chan struct{} // the log checked its files: see watchForDeletedFiles
	tcp, unix    net.Listener
	certificate  *servedCertificate // of tcp; nil: it speaks clear text
	store        store.Database
	shared       *store.Postgres // store when other instances share it, else nil
	log          *activity.Log
	presence     *presence.Gate
	configSignal configSignal // the configuration has changed
	book         *approval.Book
	catalog      *catalog.Catalog
	logins       *oauth.Accounts
	tokens       *auth.AgentTokens
	upstreams    *compat.ServerSet
	offers       *catalog.PrimitiveGuard
	approvals    *ask.Waiter
	pause        *pause.Switch
	consent      *ops.CallApprovals
	gate         *gate.Gate
	gateway      *ops.Gateway
	inspect      *ops.Inspector
	builtin      *mcpserver.BuiltinTools
	events       *ops.EventHub
	notifier     *notify.Notifier
	settings     *ops.ConfigOperations
	mcp          *mcpserver.Server
	servers      []*http.Server                // of TCP and of the socket
	listeners    []*httpserver.ServingListener // that the servers accept from
	loopback     *loopbackListeners
	running      sync.WaitGroup
	launcher     *launcher
	needs        *learnedNeeds
	values       *secretCache
	toolsKnown   atomic.Bool // see countServersWithoutTools
	appsSeen     sync.Once   // see declareApps
	// base returns the parent of all request contexts; cancelCalls ends it.
	base        func(net.Listener) context.Context
	cancelCalls context.CancelCauseFunc
	// opened are the close functions, in the order of opening.
	opened []func(context.Context) error
	// verify reads the signatures; signedChanged applies changed signatures everywhere.
	verify        func(context.Context) error
	signedChanged func(context.Context)
}

// Run runs the daemon until ctx ends. The error is a *problem.Problem when the user can fix it.
func Run(ctx context.Context, opt Options) error {
	d := &daemon{opt: opt, started: time.Now(), level: new(slog.LevelVar), spoolChecked: make(chan struct{}, 1), configSignal: make(configSignal, 1)}
	// Calls outlive ctx, because a stop lets them finish first.
	calls, cutOff := context.WithCancelCause(context.WithoutCancel(ctx))
	d.base, d.cancelCalls = func(net.Listener) context.Context { return calls }, cutOff
	defer d.cancelCalls(nil)
	defer tuneGC()()
	ended := make(chan struct{})
	defer close(ended)
	err := d.openAll()
	if err == nil {
		go killOnAbort(d, ended)
		err = d.serveUntilDone(ctx)
	}
	return errors.Join(err, d.close())
}

// killOnAbort cancels calls and kills the servers' processes when the user asks for it before the daemon has ended.
func killOnAbort(d *daemon, ended <-chan struct{}) {
	select {
	case <-d.opt.Abort:
		d.reportStop("Stopping at once.")
		d.cancelCalls(gate.ErrStopping)
		d.upstreams.KillAll()
	case <-ended:
	}
}

// onClose registers a close function. They run in reverse order.
func (d *daemon) onClose(f func(context.Context) error) { d.opened = append(d.opened, f) }

func (d *daemon) close() error {
	var all error
	for i := len(d.opened) - 1; i >= 0; i-- {
		// Each has its own timeout: the rollback of a package manager must not use up the time of the log.
		ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
		all = errors.Join(all, d.opened[i](ctx))
		cancel()
	}
	return all
}

// openAll prepares everything without contacting a server.
func (d *daemon) openAll() error {
	for _, step := range []func() error{d.openConfig, d.openDataDir, d.openListeners, d.openDatabaseAndActivityLog, d.createServices} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (d *daemon) openConfig() error {
	if d.opt.Terminal {
		d.terminal = newTerminalHandler(d.opt.Stderr, d.level)
	}
	d.logger = newLogger(d.opt.Stderr, "text", d.level, d.terminal)
	var err error
	d.live, err = config.OpenLiveConfig(d.opt.ConfigPath, config.Options{
		Listen: d.opt.Listen, DataDir: d.opt.DataDir, Logger: d.logger, Observe: d.recordConfigChange, Addresses: d.listenAddresses,
		Applied: func(f config.AppliedText) { d.settings.AddToHistory(f) }, Presence: true,
	})
	if err != nil {
		return err
	}
	cfg := d.live.Current()
	if cfg.LogFormat != "text" {
		d.terminal = nil
	}
	d.logger = newLogger(d.opt.Stderr, cfg.LogFormat, d.level, d.terminal)
	_ = d.level.UnmarshalText([]byte(cfg.LogLevel)) // config has validated the name
	return nil
}

// listenAddresses returns the addresses on which the daemon listens.
func (d *daemon) listenAddresses() []string {
	if d.tcp == nil {
		return nil
	}
	return []string{d.tcp.Addr().String()}
}

func (d *daemon) openDataDir() error {
	dir := d.live.Current().DataDir
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return problem.Newf(problem.InvalidConfig, "The data directory %s cannot be created: %v", dir, err).
			WithHint("Choose another one with --data-dir or MCPPROXY_DATA_DIR.")
	}
	var err error
	if d.release, err = lockDir(dir); err != nil {
		return err
	}
	d.onClose(func(context.Context) error { return d.release() })
	d.key, err = auth.LoadOrCreateKey(dir, d.live.Current().APIKey)
	return err
}

func (d *daemon) openListeners() error {
	cfg := d.live.Current()
	address := cfg.Listen
	var err error
	if cfg.TLS.IsOn() {
		if d.certificate, err = openCertificate(cfg.TLS, d.logger); err != nil {
			return err
		}
	}
	if d.tcp, err = net.Listen("tcp", address); err != nil && d.opt.AnyPort {
		d.logger.Warn("the address is in use: using another port", "address", address, "error", err)
		d.tcp, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		return d.newListenError(address, err)
	}
	d.onClose(func(context.Context) error { return ignoreClosed(d.tcp.Close()) })
	if d.unix, err = api.ListenSocket(d.live.Current().DataDir); err != nil {
		return fmt.Errorf("the socket of the command line: %w", err)
	}
	d.onClose(func(context.Context) error { return ignoreClosed(d.unix.Close()) })
	return nil
}

// ignoreClosed ignores that a listener was closed by its http.Server.
func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (d *daemon) openDatabaseAndActivityLog() error {
	cfg := d.live.Current()
	var err error
	if d.store, d.shared, err = store.OpenDatabase(cfg.Database, cfg.DataDir, d.logger); err != nil {
		return err
	}
	d.onClose(func(context.Context) error { return d.store.Close() })
	d.log, err = activity.Open(activity.Options{
		Dir:         filepath.Join(cfg.DataDir, "spool"),
		MaxResponse: cfg.Activity.MaxResponseSize,
		Durability:  string(cfg.Activity.Durability),
		RecentDir:   activity.FindTmpfsDir(),
		KeyFile:     filepath.Join(cfg.DataDir, "activity_key"),
		AfterCheck: func() {
			d.store.RewriteFilesIfDeleted()
			select {
			case d.spoolChecked <- struct{}{}:
			default:
			}
		},
		Retention: func() activity.Retention {
			c := d.live.Current().Activity
			return activity.Retention{Days: c.RetentionDays, MaxRecords: int64(c.MaxRecords), MaxBytes: int64(c.MaxSizeMB) << 20}
		},
		Logger: d.logger,
	}, d.store)
	if err != nil {
		return fmt.Errorf("open the activity log: %w", err)
	}
	d.onClose(d.log.Close)
	return nil
}

func (d *daemon) createServices() error {
	cfg := d.live.Current()
	d.presence = d.newPresenceGate(cfg.DataDir)
	d.book = approval.NewBook(d.newDecisionStore(cfg.DataDir), d.presence)
	d.catalog = catalog.New(catalog.Options{
		Infer:   cfg.Intent.InferHints,
		Judge:   cfg.Intent.JudgeArguments,
		Servers: cfg.Servers, Store: signatureAwaitingStore{d.store, d.verify, d.logger}, Approvals: d.book, Observe: d.recordAcceptedAndHeldDefinitions, Logger: d.logger,
	})
	d.logins = oauth.NewAccounts(oauth.Options{Vault: secret.OpenVault(cfg.DataDir, "logins", d.logger), Logger: d.logger, Version: d.opt.Version, Notify: d.announceLogin, PublicCallback: d.publicCallback})
	d.onClose(d.logins.Close)
	d.needs = newLearnedNeeds(d.store, d.logger)
	sandboxes := sandbox.NewSystem(cfg.DataDir, d.live.Path())
	d.upstreams = compat.NewServerSet(upstream.Options{
		Sandboxes: sandboxes,
		Logger:    d.logger, LogDir: filepath.Join(cfg.DataDir, "logs"), ProcessDir: filepath.Join(cfg.DataDir, "processes"),
		Observer: &serverEventRecorder{Catalog: d.catalog, log: d.log, logger: d.logger, terminal: d.terminal}, ClientVersion: d.opt.Version,
		MaxMessage: maxMessage, AccountFor: serverLoginLookup(d.logins), NeedLearned: d.needs.learn, DeclareApps: wasAppsClientSeen(cfg.DataDir),
	})
	d.onClose(d.upstreams.Close)
	secretValues := secret.OpenStore(cfg.DataDir, d.logger)
	d.values = newSecretCache(secretValues, d.logger)
	d.launcher = newLauncher(filepath.Join(cfg.DataDir, "packages"), sandboxes, d.live.Current, d.book, d.logins, d.upstreams.Set, d.values, d.needs)
	telemeter, err := telemetry.New(context.Background(), telemetry.Options{Version: d.opt.Version, Endpoint: cfg.TelemetryEndpoint, State: d.telemetryState, Logger: d.logger})
	if err != nil {
		return err
	}
	d.onClose(telemeter.Close)
	d.offers = catalog.NewPrimitiveGuard(d.catalog, d.upstreams, d.logger)
	asks := d.store.ApprovalQuestions()
	d.approvals = ask.NewWaiter(asks, d.presence, time.Now, func() { d.events.PendingChanged() })
	d.pause = pause.New(d.pauseStore(cfg.DataDir), func() { d.events.PauseChanged() })
	d.gate = gate.New(gate.Deps{
		Config: d.live.Current, Catalog: d.catalog, UpstreamSurface: d.upstreams.ServerEndpoint, Offers: d.offers, Log: d.log, Results: d.store, Ask: d.approvals, Pause: d.pause,
		Answer: func(ctx context.Context, by auth.Caller, question string, k ask.CallKey, a ask.Answer) error {
			return d.consent.AnswerByClient(ctx, by, question, k, a)
		},
		Presence: d.presence.IsOn, Logins: d.logins, Proposed: d.book.IsProposed, Observer: telemeter, Logger: d.logger,
	})
	d.gateway = ops.NewGateway(ops.GatewayDeps{
		Gate: d.gate, Book: d.book, Presence: d.presence, Upstreams: d.upstreams, Sandboxes: sandboxes,
		Log: d.log, Logins: d.logins, ObserveSearch: telemeter.ObserveSearch,
		About: ops.DaemonInfo{
			Version: d.opt.Version, StartedAt: d.started, ConfigPath: d.live.Path(),
			Surfaces: d.endpoints, ConfigError: d.live.LastError,
			CountHeld:    func(ctx context.Context) ops.StatusHeld { return d.consent.CountPendingAndLeases(ctx) },
			NeedsRestart: d.live.NeedsRestart, Unconfirmed: d.live.Unconfirmed, Warnings: func() []string {
				return slices.Concat(d.loopback.withWarning(d.live.Warnings()), d.certificate.warnings(time.Now()), ops.UnknownAnswerByClientWarnings(d.live.Current(), d.tokens), d.notifier.Warnings())
			}, LoadedToolBytes: func() int { return d.builtin.ToolListSize() },
		},
	})
	operations := ops.NewAdmin(d.gateway, d.live)
	d.inspect = ops.NewInspector(d.gateway, d.log, d.upstreams)
	d.events = ops.NewEventHub(ops.EventHubDeps{Log: d.log, Catalog: d.catalog, Servers: operations, SharedLog: d.shared != nil})
	d.notifier = notify.New(notify.Deps{Config: d.live.Current, Observe: d.events.Observe, NeedsLogin: d.logins.NeedsLogin, Secret: d.values.valueFor,
		UI: d.uiAddress, Version: d.opt.Version, Logger: d.logger})
	d.book.Subscribe(func(decided approval.DecisionEvent) { d.events.DecisionChanged(decided.Server) })
	d.tokens = auth.NewAgentTokens(signatureAwaitingTokenStore{d.store, d.presence}, cfg.DataDir, func(a auth.Actor) { d.mcp.EndSessionsOf(a) },
		func(t *auth.Token) bool { return d.presence.IsConfirmed(ops.NewTokenClaim(t)) })
	authenticator := auth.NewAuthenticatorWithSessionFile(d.key, d.tokens, cfg.DataDir, d.logger)
	profiles := func(name string) *auth.ScopeRule { return d.live.Current().ProfileRule(name) }
	replies := session.NewReplyBuilder(d.opt.Version, d.logger)
	d.builtin = mcpserver.NewBuiltinTools(operations, d.live.Current, replies)
	all := func(lane policy.CallToolVariant) session.Endpoint {
		return gate.NewAggregateEndpoint(gate.AggregateDeps{Catalog: d.catalog, Gate: d.gate, Offers: d.offers, Reply: replies, Lane: lane})
	}
	d.builtin.AppSurface = gate.NewAggregateEndpoint(gate.AggregateDeps{Catalog: d.catalog, Gate: d.gate, Offers: d.offers, Reply: replies, OnlyApps: true})
	d.mcp = mcpserver.New(mcpserver.Deps{
		BuiltIn: d.builtin, At: d.gate.GatedEndpoint, RecordRefusedCall: d.gate.RecordRefusedToolCall, All: all(policy.CallToolNone),
		Lanes: map[string]session.Endpoint{"read": all(policy.CallToolRead), "write": all(policy.CallToolWrite), "destructive": all(policy.CallToolDestructive)},
		Reply: replies, Config: d.live.Current, Auth: authenticator, Profiles: profiles, Instance: d.instanceName(), SessionStore: d.store, ToolsLoaded: d.catalog.LoadedChan(), AppsClientSeen: d.declareApps, Logger: d.logger,
	})
	d.settings = ops.NewConfigOperations(d.live, d.gateway, cfg.DataDir, d.key)
	tokens := ops.NewAccessOperations(d.gateway, d.tokens)
	d.consent = ops.NewCallApprovals(d.gateway, asks, d.approvals, d.tokens, d.events.PendingChanged)
	versions := ops.NewVersionOperations(operations, d.launcher)
	people, err := d.newClientOperations(cfg.DataDir, tokens)
	if err != nil {
		return err
	}
	kept := ops.NewSecretOperations(ops.SecretManager{Store: secretValues, Servers: func() []config.Server { return d.live.Current().Servers }},
		d.gateway, d.values.requestRead)
	trials := &ops.TrialOperations{Each: d.log.EachRecord, Live: d.live.Current, Parse: d.settings.ParseMaskedText, Catalog: d.catalog, Tokens: d.tokens.ListAll, Now: time.Now}
	prospects := &ops.Explainer{Gateway: d.gateway, Tokens: d.tokens, Account: people.Account.AccountClients}
	rest, err := api.New(api.Deps{Implementations: []any{operations, ops.NewSampleServers(operations, d.opt.SampleServers), d.inspect, ops.NewActivityHistory(d.log, tokens.UnprovenReason), d.events, d.notifier, d.settings, kept, tokens, d.consent, people, d.newImportOperations(people.Account.AccountClients, operations, secretValues, kept), trials, prospects, versions}, Refuse: d.gate.RecordRefusal, Auth: authenticator, Profiles: profiles, PublicPath: func(host string) string { return d.live.Current().PublicPathAt(host) }, Logger: d.logger, Version: d.opt.Version})
	if err != nil {
		return err
	}
	ui, err := web.New(d.presence.NeedsPasskey)
	if err != nil {
		return err
	}
	d.createHTTPServers(d.mcp, rest, ui, d.metricsHandler(authenticator, profiles, telemeter))
	return nil
}

// serveUntilDone starts everything, waits for the end of ctx and stops in reverse order.
func (d *daemon) serveUntilDone(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	failed := make(chan error, len(d.servers))
	for i, l := range d.listeners {
		d.running.Go(func() {
			if err := d.servers[i].Serve(l); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
				failed <- err
			}
		})
	}
	d.announceReady()
	for _, run := range []func(context.Context){
		d.readPause, d.catalog.Run, d.storeDecisionsAgainOnReopen, d.tokens.Run, d.needs.run, d.mcp.Run, d.followOtherInstances,
		d.gateway.RunLearning, d.watchForDeletedFiles, d.recordAnchorFingerprintDaily, d.offers.FollowListChanges,
		d.logPendingReviews, d.events.Run, d.notifier.Run, d.values.readUntilDone,
	} {
		d.running.Go(func() { run(ctx) })
	}
	if d.certificate != nil {
		d.running.Go(func() { d.certificate.follow(ctx) })
	}
	d.running.Go(func() { d.configSignal.followPresenceSetting(ctx, d.live, d.signedChanged) })
	// A tool is locked before its server is touched.
	d.running.Go(func() {
		d.live.Run(ctx, d.catalog, d.gate, d.launcher, d.notifier, logLevelUpdater{d.level}, d.configSignal)
	})
	d.recordSystemEvent("start", d.opt.Version)

	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	d.reportStop("Stopping: running calls have up to %v to finish. Press Ctrl-C again to stop immediately.", finishTimeout)
	d.stopServing()
	cancel()
	d.running.Wait()
	if installing := d.upstreams.InstallingServers(); len(installing) > 0 {
		d.reportStop("Waiting up to %v for the package managers of %s to finish. Press Ctrl-C again to stop immediately.", installTimeout, strings.Join(installing, ", "))
	}
	d.recordSystemEvent("stop", "")
	return err
}

// reportStop tells the user why the stop waits.
func (d *daemon) reportStop(format string, args ...any) {
	d.terminal.printEvent(format, args...)
	if d.opt.Stopping != nil {
		d.opt.Stopping(fmt.Sprintf(format, args...))
	}
}

func (d *daemon) announceReady() {
	if d.terminal != nil {
		d.printWelcome()
	} else {
		d.logger.Info("mcpproxy answers", "mcp", d.baseURL()+"/mcp",
			"config", d.live.Path(), "data_dir", d.live.Current().DataDir)
	}
	if d.opt.Ready != nil {
		d.opt.Ready(DaemonLocation{
			Address: d.tcp.Addr().String(), Socket: d.unix.Addr().String(),
			DataDir: d.live.Current().DataDir, ConfigPath: d.live.Path(),
		})
	}
}

// stopServing lets running calls finish, then rejects the rest, and closes the connections of clients that do not read the error.
func (d *daemon) stopServing() {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	go func() {
		select {
		case <-d.opt.Abort:
			cancel()
		case <-ctx.Done():
		}
	}()
	refuse := time.AfterFunc(finishTimeout, func() { d.cancelCalls(gate.ErrStopping) })
	defer refuse.Stop()
	var stopping sync.WaitGroup
	d.events.Close()
	d.approvals.EndAllWaits()
	for i, s := range d.servers {
		// Endless streams must not delay the stop.
		s.RegisterOnShutdown(d.mcp.Close)
		s.RegisterOnShutdown(d.inspect.Close)
		l := d.listeners[i]
		stopping.Go(func() {
			if err := l.Close(); err != nil { // accepted connections are served first
				d.logger.Debug("a listener did not close", "error", err)
			}
			stopping.Go(func() {
				if s.Shutdown(ctx) != nil {
					_ = s.Close() // the timeout is over
				}
			})
			if err := l.Shutdown(ctx); err != nil {
				d.logger.Warn("calls were cut off by the stop", "error", err)
			}
		})
	}
	stopping.Go(func() { d.mcp.Shutdown(ctx) })
	stopping.Wait()
}

func (d *daemon) endpoints() []ops.Surface {
	base := d.baseURL()
	all := []ops.Surface{
		{Name: "mcp", Address: base + "/mcp"},
		{Name: "all servers", Address: base + "/mcp/all"},
		{Name: "one lane of all servers", Address: base + "/mcp/all/{lane}"},
		{Name: "one server", Address: base + "/mcp/servers/{server}"},
		{Name: "rest", Address: base + api.Prefix},
		{Name: api.UI, Address: d.uiAddress()},
		{Name: "socket", Address: d.unix.Addr().String()},
	}
	if listener := config.ListenerURL(d.tcp.Addr().String(), d.certificate != nil); base != listener && d.isFronted() {
		all = append(all, ops.Surface{Name: ops.ListenerSurface, Address: listener})
	}
	return all
}

// isFronted reports whether the URL for clients is not simply the address of the listener.
func (d *daemon) isFronted() bool { return d.certificate != nil || d.live.Current().PublicURL != "" }

// baseURL returns the URL of the daemon for clients, without a path.
func (d *daemon) baseURL() string {
	if d.isFronted() {
		return d.live.Current().BaseURL(d.tcp.Addr().String(), d.certificate != nil)
	}
	return "http://" + d.tcp.Addr().String()
}

// publicCallback returns the address at which browsers end a login to a server, or "": on this machine only.
func (d *daemon) publicCallback() string {
	if d.live.Current().PublicURL == "" {
		return ""
	}
	return d.baseURL() + callbackPath
}

// uiAddress returns the URL of the web UI. Passkeys need the one with the name localhost.
func (d *daemon) uiAddress() string {
	if passkeys := d.presence.NeedsPasskey(); passkeys || !d.isFronted() {
		return web.UIAddress(d.tcp.Addr(), passkeys)
	}
	return d.baseURL() + web.Path
}
