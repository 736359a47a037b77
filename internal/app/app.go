// Package app wires the parts into the running daemon: it opens what must be
// open, starts what runs, and stops it in the reverse order.
//
// It guarantees that MCPProxy answers before any upstream is asked, that one
// data directory has one daemon, that nothing it started outlives Run, and
// that a stop finishes or refuses the calls in flight and projects what is in
// the log. It has no logic of the product of its own.
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
	"mcpproxy/internal/gate/presence"
	"mcpproxy/internal/mcp/httpserver"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcpserver"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/ops/telemetry"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store"
	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/upstream"
	"mcpproxy/internal/upstream/compat"
	"mcpproxy/internal/upstream/oauth"
	"mcpproxy/internal/upstream/process"
	"mcpproxy/internal/upstream/secret"
	"mcpproxy/internal/web"
)

// maxMessage bounds one message of an upstream, in bytes.
const maxMessage = 16 << 20

// stopTime is how long calls in flight, upstreams and the log each have to end.
const stopTime = 10 * time.Second

// installTime is how long package managers have in the worst case: to end what they
// install, then to take it back.
const installTime = stopTime + process.RollbackGrace

// finishTime is how much of stopTime calls have to finish; then they are
// refused, and have the rest of it to take the refusal.
const finishTime = 8 * time.Second

// Options is how the daemon was asked to run. Empty fields follow the
// environment, the configuration, the defaults.
type Options struct {
	ConfigPath string
	DataDir    string
	Listen     string
	// AnyPort takes a free port of the loopback address when the one to listen
	// on is in use: for a daemon that serves a client over the socket first.
	AnyPort bool
	Version string
	// Toys are the servers that a person can add to see MCPProxy work.
	Toys   []ops.NewServer
	Stderr io.Writer
	// Person has Stderr read by a person at a terminal: lines in place of the log in
	// text.
	Person bool
	// AtOnce, when it is closed, ends the daemon without waiting for calls and servers.
	AtOnce <-chan struct{}
	// Stopping, when set, is told for the user what the stop waits for.
	Stopping func(what string)
	// Ready, when set, is called once the daemon answers.
	Ready func(Running)
}

// Running tells where a daemon answers.
type Running struct {
	Address    string // of the HTTP listener, host:port
	Socket     string
	DataDir    string
	ConfigPath string
}

// daemon is everything that runs. The fields are set in the order of opening.
type daemon struct {
	opt       Options
	started   time.Time
	live      *config.Live
	level     *slog.LevelVar
	logger    *slog.Logger
	person    *people // who is told what happens; nil for none
	key       string
	release   func() error  // of the data directory
	looked    chan struct{} // the log was looked at: see keepFiles
	tcp, unix net.Listener
	store     store.Database
	shared    *store.Postgres // the same, when other instances share it; else nil
	log       *activity.Log
	presence  *presence.Gate
	demands   demands // that the file is another one
	book      *approval.Book
	catalog   *catalog.Catalog
	logins    *oauth.Accounts
	tokens    *auth.Tokens
	upstreams *compat.Set
	offers    *catalog.PrimitiveGuard
	approvals *ask.Waiter
	consent   *ops.Consent
	gate      *gate.Gate
	gateway   *ops.Gateway
	inspect   *ops.Inspector
	builtin   *mcpserver.BuiltinTools
	events    *ops.Hub
	settings  *ops.Settings
	mcp       *mcpserver.Server
	servers   []*http.Server         // of TCP and of the socket
	listeners []*httpserver.Listener // that they accept from
	byName    *byName
	running   sync.WaitGroup
	launcher  *launcher
	values    *secretValues
	heard     atomic.Bool // see unheard
	// base returns what every request's context descends from; cutOff ends it.
	// atOnce ends when the daemon is to end without waiting.
	base   func(net.Listener) context.Context
	cutOff context.CancelCauseFunc
	// opened are the closers of what is open, in the order of opening.
	opened []func(context.Context) error
	// verify reads what is signed; signedChanged has it count everywhere.
	verify        func(context.Context) error
	signedChanged func(context.Context)
}

// Run runs the daemon until ctx ends. The error is a *problem.Problem when the
// user can do something about it.
func Run(ctx context.Context, opt Options) error {
	d := &daemon{opt: opt, started: time.Now(), level: new(slog.LevelVar), looked: make(chan struct{}, 1), demands: make(demands, 1)}
	// Calls outlive ctx: a stop lets them finish first.
	calls, cutOff := context.WithCancelCause(context.WithoutCancel(ctx))
	d.base, d.cutOff = func(net.Listener) context.Context { return calls }, cutOff
	defer d.cutOff(nil)
	defer paceGC()()
	ended := make(chan struct{})
	defer close(ended)
	err := d.open()
	if err == nil {
		go endAtOnce(d, ended)
		err = d.run(ctx)
	}
	return errors.Join(err, d.close())
}

// endAtOnce cuts off calls and kills the servers' processes when that is asked for
// before the daemon has ended.
func endAtOnce(d *daemon, ended <-chan struct{}) {
	select {
	case <-d.opt.AtOnce:
		d.say("Ending at once.")
		d.cutOff(gate.ErrStopping)
		d.upstreams.Kill()
	case <-ended:
	}
}

// onClose notes what is to be closed, the last first.
func (d *daemon) onClose(f func(context.Context) error) { d.opened = append(d.opened, f) }

func (d *daemon) close() error {
	var all error
	for i := len(d.opened) - 1; i >= 0; i-- {
		// Each has its own time: a package manager that takes back what it has
		// installed must not use up that of the log.
		ctx, cancel := context.WithTimeout(context.Background(), stopTime)
		all = errors.Join(all, d.opened[i](ctx))
		cancel()
	}
	return all
}

// open makes everything ready, and starts nothing that contacts an upstream.
func (d *daemon) open() error {
	for _, step := range []func() error{d.openConfig, d.openDataDir, d.listen, d.openLog, d.wire} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (d *daemon) openConfig() error {
	if d.opt.Person {
		d.person = newPeople(d.opt.Stderr, d.level)
	}
	d.logger = newLogger(d.opt.Stderr, "text", d.level, d.person)
	var err error
	d.live, err = config.Open(d.opt.ConfigPath, config.Options{
		Listen: d.opt.Listen, DataDir: d.opt.DataDir, Logger: d.logger, Observe: d.configChanged, Addresses: d.addresses,
		Applied: func(f config.AppliedText) { d.settings.Applied(f) }, Presence: true,
	})
	if err != nil {
		return err
	}
	cfg := d.live.Current()
	if cfg.LogFormat != "text" {
		d.person = nil
	}
	d.logger = newLogger(d.opt.Stderr, cfg.LogFormat, d.level, d.person)
	_ = d.level.UnmarshalText([]byte(cfg.LogLevel)) // config has checked the name
	return nil
}

// addresses are where the daemon listens by now.
func (d *daemon) addresses() []string {
	if d.tcp == nil {
		return nil
	}
	return []string{d.tcp.Addr().String()}
}

func (d *daemon) openDataDir() error {
	dir := d.live.Current().DataDir
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return problem.Newf(problem.InvalidConfig, "The data directory %s cannot be made: %v", dir, err).
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

func (d *daemon) listen() error {
	address := d.live.Current().Listen
	var err error
	if d.tcp, err = net.Listen("tcp", address); err != nil && d.opt.AnyPort {
		d.logger.Warn("the address is in use: another port is taken", "address", address, "error", err)
		d.tcp, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		return d.cannotListen(address, err)
	}
	d.onClose(func(context.Context) error { return closed(d.tcp.Close()) })
	if d.unix, err = api.ListenSocket(d.live.Current().DataDir); err != nil {
		return fmt.Errorf("the socket of the command line: %w", err)
	}
	d.onClose(func(context.Context) error { return closed(d.unix.Close()) })
	return nil
}

// closed hides that a listener was closed already, by its http.Server.
func closed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (d *daemon) openLog() error {
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
		RecentDir:   activity.MemoryDir(),
		KeyFile:     filepath.Join(cfg.DataDir, "activity_key"),
		Alongside: func() {
			d.store.Look()
			select {
			case d.looked <- struct{}{}:
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
		return fmt.Errorf("the activity log: %w", err)
	}
	d.onClose(d.log.Close)
	return nil
}

func (d *daemon) wire() error {
	cfg := d.live.Current()
	d.presence = d.newGate(cfg.DataDir)
	d.book = approval.NewBook(d.decisions(cfg.DataDir), d.presence)
	d.catalog = catalog.New(catalog.Options{
		Infer:   cfg.Intent.InferHints,
		Judge:   cfg.Intent.JudgeArguments,
		Servers: cfg.Servers, Store: verified{d.store, d.verify, d.logger}, Approvals: d.book, Observe: d.admitted, Logger: d.logger,
	})
	d.logins = oauth.New(oauth.Options{Vault: secret.OpenVault(cfg.DataDir, "logins", d.logger), Logger: d.logger, Version: d.opt.Version})
	d.onClose(d.logins.Close)
	d.upstreams = compat.NewSet(upstream.Options{
		Logger: d.logger, LogDir: filepath.Join(cfg.DataDir, "logs"), ProcessDir: filepath.Join(cfg.DataDir, "processes"),
		Observer: &recorder{Catalog: d.catalog, log: d.log, logger: d.logger, person: d.person}, ClientVersion: d.opt.Version,
		MaxMessage: maxMessage, AccountFor: account(d.logins),
	})
	d.onClose(d.upstreams.Close)
	secretValues := secret.Open(cfg.DataDir, d.logger)
	d.values = newSecretValues(secretValues, d.logger)
	d.launcher = newLauncher(d.live.Current, d.book, d.logins, d.upstreams.Set, d.values)
	telemeter, err := telemetry.New(context.Background(), telemetry.Options{Version: d.opt.Version, Endpoint: cfg.TelemetryEndpoint, State: d.state, Logger: d.logger})
	if err != nil {
		return err
	}
	d.onClose(telemeter.Close)
	d.offers = catalog.NewPrimitiveGuard(d.catalog, d.upstreams, d.logger)
	asks := d.store.Asks()
	d.approvals = ask.NewWaiter(asks, d.presence, time.Now, func() { d.events.PendingChanged() })
	d.gate = gate.New(gate.Deps{
		Config: d.live.Current, Catalog: d.catalog, Servers: d.upstreams.Surface, Offers: d.offers, Log: d.log, Results: d.store, Ask: d.approvals,
		Answer: func(ctx context.Context, by auth.Caller, question string, k ask.Key, a ask.Answer) error {
			return d.consent.ByClient(ctx, by, question, k, a)
		},
		Presence: d.presence.On, NeedsLogin: d.logins.NeedsLogin, Proposed: d.book.Proposed, Observer: telemeter, Logger: d.logger,
	})
	d.gateway = ops.New(ops.Deps{
		Gate: d.gate, Book: d.book, Presence: d.presence, Upstreams: d.upstreams,
		Log: d.log, Logins: d.logins, Timed: telemeter.Searched,
		About: ops.About{
			Version: d.opt.Version, StartedAt: d.started, ConfigPath: d.live.Path(),
			Surfaces: d.surfaces, ConfigError: d.live.LastError,
			Held:         func(ctx context.Context) ops.StatusHeld { return d.consent.Counts(ctx) },
			NeedsRestart: d.live.NeedsRestart, Unconfirmed: d.live.Unconfirmed, Warnings: func() []string {
				return slices.Concat(d.byName.and(d.live.Warnings()), ops.NoSuchTokens(d.live.Current(), d.tokens))
			}, Loaded: func() int { return d.builtin.ListBytes() },
		},
	})
	operations := ops.NewAdmin(d.gateway, d.live)
	d.inspect = ops.NewInspector(ops.InspectorDeps{Gateway: d.gateway, Log: d.log, Upstreams: d.upstreams})
	d.events = ops.NewHub(ops.HubDeps{Log: d.log, Catalog: d.catalog, Servers: operations, Shared: d.shared != nil})
	d.book.Follow(func(decided approval.Decided) { d.events.Decided(decided.Server) })
	d.tokens = auth.NewTokens(signedTokens{store.TokensIn(d.store), d.presence}, cfg.DataDir, func(a auth.Actor) { d.mcp.End(a) },
		func(t *auth.Token) bool { return d.presence.Confirmed(ops.TokenClaim(t)) })
	authenticator := auth.NewWithSessionFile(d.key, d.tokens, cfg.DataDir, d.logger)
	profiles := func(name string) *auth.ScopeRule { return d.live.Current().ProfileRule(name) }
	replies := session.NewReplyWriter(d.opt.Version, d.logger)
	d.builtin = mcpserver.NewBuiltinTools(operations, d.live.Current, replies)
	d.mcp = mcpserver.New(mcpserver.Deps{
		BuiltIn: d.builtin, At: d.gate.Surface, Refused: d.gate.Refused,
		All:   gate.NewAggregate(gate.AggregateDeps{Catalog: d.catalog, Gate: d.gate, Offers: d.offers, Reply: replies}),
		Reply: replies, Config: d.live.Current, Auth: authenticator, Profiles: profiles, Instance: d.instance(), Logger: d.logger,
	})
	d.settings = ops.NewSettings(ops.SettingsDeps{Live: d.live, Gateway: d.gateway, DataDir: cfg.DataDir, Key: d.key, Logger: d.logger})
	tokens := ops.NewAccess(d.gateway, d.tokens)
	d.consent = ops.NewConsent(d.gateway, asks, d.approvals, d.tokens, d.events.PendingChanged)
	people, err := d.clients(cfg.DataDir, tokens)
	if err != nil {
		return err
	}
	kept := ops.NewSecrets(ops.Secrets{Store: secretValues, Servers: func() []config.Server { return d.live.Current().Servers }},
		ops.Journal{Log: d.log, Logger: d.logger}, d.values.look)
	trials := ops.NewTrial(ops.TrialDeps{Each: d.log.Each, Live: d.live.Current, Parse: d.settings.Candidate, Catalog: d.catalog, Tokens: d.tokens.All, Now: time.Now})
	prospects := &ops.Prospects{Gateway: d.gateway, Tokens: d.tokens, Account: people.Account.Account}
	rest, err := api.New(api.Deps{Homes: []any{operations, ops.NewToys(operations, d.opt.Toys), d.inspect, ops.NewHistory(provenLog{d.log, tokens}), d.events, d.settings, kept, tokens, d.consent, people, d.takeover(people.Account.Account, operations, secretValues, kept), trials, prospects}, Refuse: d.gate.Refuse, Auth: authenticator, Profiles: profiles, Logger: d.logger, Version: d.opt.Version})
	if err != nil {
		return err
	}
	ui, err := web.New(d.presence.ByPasskey)
	if err != nil {
		return err
	}
	d.openServers(d.mcp, rest, ui, d.metrics(authenticator, profiles, telemeter))
	return nil
}

// run starts everything, waits for the end of ctx and stops in reverse order.
func (d *daemon) run(ctx context.Context) error {
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
	d.announce()
	d.running.Go(func() { d.catalog.Run(ctx) })
	d.running.Go(func() { d.refill(ctx) })
	d.running.Go(func() { d.tokens.Run(ctx) })
	d.running.Go(func() { d.followOthers(ctx) })
	d.running.Go(func() { d.gateway.Learn(ctx) })
	d.running.Go(func() { d.keepFiles(ctx) })
	d.running.Go(func() { d.noteAnchor(ctx) })
	d.running.Go(func() { d.demands.follow(ctx, d.live, d.signedChanged) })
	d.running.Go(func() { d.offers.Follow(ctx) })
	d.running.Go(func() { d.tellWhatWaits(ctx) })
	d.running.Go(func() { d.events.Run(ctx) })
	d.running.Go(func() { d.values.run(ctx) })
	// A tool is locked before its server is touched.
	d.running.Go(func() { d.live.Run(ctx, d.catalog, d.gate, d.launcher, logLevel{d.level}, d.demands) })
	d.record(activity.Record{Type: activity.System, Status: activity.Success,
		Metadata: activity.Metadata{Action: "start", Detail: d.opt.Version}})

	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	d.say("Stopping: calls that run have up to %v to finish. Ctrl-C again ends them at once.", finishTime)
	d.stopServing()
	cancel()
	d.running.Wait()
	if installing := d.upstreams.Installing(); len(installing) > 0 {
		d.say("Waiting for the package managers of %s to end what they install, up to %v. Ctrl-C again ends them at once.", strings.Join(installing, ", "), installTime)
	}
	d.record(activity.Record{Type: activity.System, Status: activity.Success,
		Metadata: activity.Metadata{Action: "stop"}})
	return err
}

// say tells the user what the stop waits for.
func (d *daemon) say(format string, args ...any) {
	d.person.event(format, args...)
	if d.opt.Stopping != nil {
		d.opt.Stopping(fmt.Sprintf(format, args...))
	}
}

func (d *daemon) announce() {
	if d.person != nil {
		d.greet()
	} else {
		d.logger.Info("mcpproxy answers", "mcp", "http://"+d.tcp.Addr().String()+"/mcp",
			"config", d.live.Path(), "data_dir", d.live.Current().DataDir)
	}
	if d.opt.Ready != nil {
		d.opt.Ready(Running{
			Address: d.tcp.Addr().String(), Socket: d.unix.Addr().String(),
			DataDir: d.live.Current().DataDir, ConfigPath: d.live.Path(),
		})
	}
}

// stopServing lets the calls in flight finish, then refuses what is left, and
// cuts off who does not take even that.
func (d *daemon) stopServing() {
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	go func() {
		select {
		case <-d.opt.AtOnce:
			cancel()
		case <-ctx.Done():
		}
	}()
	refuse := time.AfterFunc(finishTime, func() { d.cutOff(gate.ErrStopping) })
	defer refuse.Stop()
	var stopping sync.WaitGroup
	d.events.Close()
	d.approvals.Stop()
	for i, s := range d.servers {
		// Streams without an end must not hold up the stop.
		s.RegisterOnShutdown(d.mcp.Close)
		s.RegisterOnShutdown(d.inspect.Close)
		l := d.listeners[i]
		stopping.Go(func() {
			if err := l.Close(); err != nil { // who has come is heard first
				d.logger.Debug("a listener did not close", "error", err)
			}
			stopping.Go(func() {
				if s.Shutdown(ctx) != nil {
					_ = s.Close() // the time is over: what is left is cut off
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

func (d *daemon) surfaces() []ops.Surface {
	base := "http://" + d.tcp.Addr().String()
	return []ops.Surface{
		{Name: "mcp", Address: base + "/mcp"},
		{Name: "all servers", Address: base + "/mcp/all"},
		{Name: "one server", Address: base + "/mcp/servers/{server}"},
		{Name: "rest", Address: base + api.Prefix},
		{Name: api.UI, Address: web.Address(d.tcp.Addr(), d.presence.ByPasskey())},
		{Name: "socket", Address: d.unix.Addr().String()},
	}
}
