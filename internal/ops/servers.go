package ops

import (
	"cmp"
	"context"
	"slices"
	"time"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/redact"
	"mcpproxy/internal/upstream"
	"mcpproxy/internal/upstream/oauth"
)

// Servers returns all configured and proposed servers in the caller's scope, sorted by name, with the tools in scope.
func (g *Gateway) Servers(_ context.Context, c Caller, _ Nothing) (ServerViews, error) {
	within := c.Scope()
	cfg, snapshot := g.Config(), g.Catalog.Current().ScopedTo(within)
	views := make([]ServerView, 0, len(snapshot.Servers()))
	for _, s := range snapshot.Servers() {
		views = append(views, g.serverView(s, cfg.Server(s.Name)))
	}
	for _, p := range g.Proposals() {
		if within.AllowsServer(p.Config.Name) {
			views = append(views, p.serverView())
		}
	}
	slices.SortFunc(views, func(a, b ServerView) int { return cmp.Compare(a.Name, b.Name) })
	return ServerViews{Servers: views, Paused: g.PauseNotice() != ""}, nil
}

// Server returns one server with the tools in the caller's scope, or SERVER_NOT_FOUND with similar names.
func (g *Gateway) Server(_ context.Context, c Caller, in ServerRef) (ServerView, error) {
	cfg := g.Config()
	s, err := g.findServerInScope(&c, in.Name)
	if err != nil && problem.From(err).Code == problem.OutOfScope {
		return ServerView{}, err
	}
	if err == nil {
		return g.serverView(s, cfg.Server(in.Name)), nil
	}
	for _, p := range g.Proposals() {
		if p.Config.Name == in.Name {
			return p.serverView(), nil
		}
	}
	if c := cfg.Server(in.Name); c != nil { // added, but not yet in the catalog
		return unstartedServerView(*c), nil
	}
	return ServerView{}, err
}

func (g *Gateway) serverView(s *catalog.Server, c *config.Server) ServerView {
	v := ServerView{
		Name: s.Name, Protocol: s.Protocol, Enabled: s.Enabled, Quarantined: s.Quarantined,
		State: g.serverState(s), ToolCount: len(s.Tools),
		Tools: countByStatus(s.Tools), PID: s.State.PID, Restarts: s.State.Restarts,
		Since: timeOrNil(s.State.Since), RetryAt: timeOrNil(s.State.RetryAt),
		ProtocolVersion: s.State.ProtocolVersion, ServerInfo: s.State.ServerInfo,
	}
	v.Hint, v.Offers = unlistedToolsHint(s), countPrimitives(g.Catalog.CurrentPrimitives(s.Name))
	if st := s.State; st.Failure.Code != "" && st.Phase != upstream.Ready {
		v.LastError, v.LastErrorAt, v.Failure = maskedLastError(s), timeOrNil(st.FailedAt), st.Failure.String()
	}
	p := g.Upstreams.StartProgress(s.Name)
	v.Step, v.StepSince, v.Ahead, v.Trouble = p.Step, timeOrNil(p.Since), p.QueuedBefore, p.Trouble
	v.Detail = stateDetailText(&v, p)
	if c != nil {
		shown := c.Masked()
		v.Command, v.Args, v.URL = shown.Command, shown.Args, shown.URL
		v.Trust, v.Lazy = string(c.Trust), c.Lazy
		v.Unhinted = countUnhintedTools(s, c)
		v.Session, v.Sandbox = string(c.Session), g.sandboxView(c, &shown)
		if s.Quarantined {
			v.Stage = reviewStageOf(*c, g.Book.ServerView(s.Name))
		}
	}
	v.Warnings = slices.Concat(v.Warnings, g.Upstreams.Deviations(s.Name), g.Catalog.LeftOut(s))
	v.NeedsLogin, v.Login = g.Logins.NeedsLogin(s.Name), g.loginView(s.Name)
	v.SessionNeeds = g.Upstreams.SessionNeeds(s.Name)
	if v.State == stateNeedsSecret || v.State == stateNeedsVariable {
		v.Detail = maskedLastError(s)
	}
	if v.State == stateNeedsLogin {
		v.Detail = "needs a login: " + LoginCommand(v.Name)
	}
	return v
}

// sandboxView describes the sandbox of a server; nil without one.
func (g *Gateway) sandboxView(s, shown *config.Server) *SandboxView {
	if !s.Sandbox.IsOn() {
		return nil
	}
	v := &SandboxView{Mode: string(s.Sandbox.Mode), Text: shown.Sandbox.Text(), Trusted: s.TrustSandbox && s.Sandbox.ProvesReadOnly()}
	if g.Sandboxes == nil {
		return v
	}
	for _, gap := range g.Sandboxes.NotEnforced(s.Sandbox) {
		v.NotEnforced = append(v.NotEnforced, gap.String())
	}
	v.Notes = g.Sandboxes.Notes(s.Sandbox)
	return v
}

// stateNeedsLogin is the state of a server that needs a login to connect.
const stateNeedsLogin = "needs_login"

// serverState is like DisplayedServerState, but also returns the states for a missing login, secret or variable.
func (g *Gateway) serverState(s *catalog.Server) string {
	if s.State.Phase == upstream.Failed && g.Logins.NeedsLogin(s.Name) {
		return stateNeedsLogin
	}
	if s.State.NeedsSecret() {
		return stateNeedsSecret
	}
	if s.State.NeedsVariable() {
		return stateNeedsVariable
	}
	return DisplayedServerState(s)
}

// stateNeedsSecret is the state of a server that needs a missing secret to start.
const stateNeedsSecret = "needs_secret"

// stateNeedsVariable is the state of a server that needs a missing environment variable to start.
const stateNeedsVariable = "needs_variable"

// DisplayedServerState returns the displayed state of a server. s is nil for a proposed server.
func DisplayedServerState(s *catalog.Server) string {
	if s == nil || s.State.Phase == "" {
		return string(upstream.Stopped)
	}
	return string(s.State.Phase)
}

// maskedLastError returns the last error of a server that is not ready, with secrets masked.
func maskedLastError(s *catalog.Server) string {
	if s == nil || s.State.Phase == upstream.Ready {
		return ""
	}
	return redact.Text(s.State.LastError)
}

// reviewStageOf returns the review stage of a configured server.
func reviewStageOf(s config.Server, decided *approval.ServerView) ReviewStage {
	switch {
	case !catalog.IsQuarantined(s, decided):
		return StageApproved
	case catalog.IsLaunchApproved(s, decided):
		return StageDefinitions
	}
	return StageLaunch
}

// stateDetailText describes the progress or the failure of a server that is not ready. It returns "" for a ready, idle
// or disabled server.
func stateDetailText(v *ServerView, p upstream.StartProgress) string {
	switch {
	case !v.Enabled || v.State == string(upstream.Ready) || v.State == string(upstream.Idle):
		return ""
	case v.State == string(upstream.Failed):
		return "failed, " + v.LastError + "; see `mcpproxy upstream logs " + v.Name + "`"
	case v.Quarantined && v.State == string(upstream.Stopped):
		return "waits for your review: mcpproxy upstream approve " + v.Name
	case v.State == string(upstream.Stopped):
		return "is about to start"
	}
	words := cmp.Or(p.String(), "connecting")
	if v.LastError != "" && v.LastErrorAt != nil {
		words += "; the last try failed " + upstream.FormatSeconds(time.Since(*v.LastErrorAt)) + " ago, " + v.LastError
	}
	return words
}

// unlistedToolsHint explains how to list the tools of a server that was never started.
func unlistedToolsHint(s *catalog.Server) string {
	if s.State.Phase != upstream.Idle || s.Listed {
		return ""
	}
	return "Its tools are not known, since it is lazy and was never started. `mcpproxy upstream restart " + s.Name +
		"`, or upstream_servers with operation restart, starts it and lists them."
}

// timeOrNil returns a pointer to a time, or nil if the time is zero.
func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// countPrimitives counts prompts, resources, templates and instructions. It returns nil if there are none.
func countPrimitives(now *catalog.DecidedPrimitives) *OfferCounts {
	counts := now.Counts()
	if len(counts) == 0 {
		return nil
	}
	of := func(kind tool.DefinitionKind) *OfferCount {
		n, ok := counts[kind]
		if !ok {
			return nil
		}
		return &OfferCount{n.Total, n.Waiting, n.Blocked}
	}
	return &OfferCounts{of(tool.KindInstructions), of(tool.KindPrompt), of(tool.KindResource), of(tool.KindTemplate)}
}

// restartTimeout limits how long RestartServer waits for the new connection.
const restartTimeout = 10 * time.Second

// RestartServer reconnects a server. It returns when the server is ready or has failed, or after restartTimeout. The
// returned state shows the outcome. A user's restart is immediate and ends running calls. An agent's restart ends no
// call of other clients, and is rejected shortly after another restart (see upstream.Set.RestartWhenDrained). Both are
// recorded before they happen. The surface records rejections.
func (g *Gateway) RestartServer(ctx context.Context, c Caller, in ServerRef) (ServerView, error) {
	name := in.Name
	begin := func() error { return g.recordActionOnServer(c, name, "restart") }
	asked, err := time.Now(), g.checkRestartAllowed(name, c)
	switch {
	case err != nil:
	case c.IsUser():
		if err = begin(); err == nil {
			err = g.Upstreams.Restart(name)
		}
	default:
		err = g.Upstreams.RestartWhenDrained(ctx, name, func() error {
			asked = time.Now()
			return begin()
		})
		if err != nil && ctx.Err() != nil {
			err = problem.Newf(problem.Interrupted, "The restart of '%s' was cancelled by its caller.", name).Because(err)
		}
	}
	if err == nil {
		err = g.waitForServer(ctx, name, asked)
	}
	if err != nil {
		return ServerView{}, err
	}
	return g.Server(ctx, c, in)
}

// checkRestartAllowed returns an error if a server cannot be restarted.
func (g *Gateway) checkRestartAllowed(name string, c Caller) error {
	s, err := g.findServerInScope(&c, name)
	if err != nil && problem.From(err).Code == problem.OutOfScope {
		return err
	}
	if !policy.ScopeIncludes(c.Scope(), policy.Write) {
		return problem.Newf(problem.OutOfScope, "This client is not allowed to restart servers: it needs access to the write lane").
			WithHint("Only the user can extend the scope of an agent token.")
	}
	if _, proposed := g.Book.FindProposal(name); err != nil && proposed && g.Config().Server(name) == nil {
		return onlyProposedError(name)
	}
	if err != nil {
		return err
	}
	if wanted := g.Config().Server(name); wanted == nil ||
		!catalog.MayStartServer(*wanted, g.Book.ServerView(name)) || s.Quarantined && !c.IsUser() {
		return problem.Newf(problem.ServerUnavailable, "Server '%s' is not running: it is disabled or quarantined.", name).
			WithHint("Enable it with `mcpproxy upstream enable " + name + "`, or review it with `mcpproxy upstream approve " + name + "`.")
	}
	return nil
}

// waitForServer waits until the server is in a final state that it entered after the given time.
func (g *Gateway) waitForServer(ctx context.Context, name string, after time.Time) error {
	limit := time.NewTimer(restartTimeout)
	defer limit.Stop()
	for {
		snapshot := g.Catalog.Current()
		s := snapshot.Server(name)
		if s == nil || s.State.Since.After(after) && s.State.Phase != upstream.Connecting {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-limit.C:
			return nil
		case <-snapshot.ReplacedChan():
		}
	}
}

// LoginView is the progress of a user's login to a server.
type LoginView struct {
	Server    string     `json:"server"`
	State     string     `json:"state" enum:"waiting,done,failed" doc:"waiting for the user, done, or failed."`
	URL       string     `json:"url,omitempty" doc:"The URL of the login page. Without a code, open it in a browser on the machine on which MCPProxy runs, or send the last URL in the browser to /login/complete."`
	Code      string     `json:"code,omitempty" doc:"The code that the login page asks for, from any machine. Absent without a device login."`
	ExpiresAt *time.Time `json:"expires_at,omitempty" doc:"When the login expires."`
	Error     string     `json:"error,omitempty" doc:"Why the login failed. Absent if it did not."`
	Issuer    string     `json:"authorization_server,omitempty" doc:"The authorization server of the login."`
	Before    string     `json:"previous_authorization_server,omitempty" doc:"The authorization server of the login before, if the server has changed it."`
}

func toLoginView(server string, p oauth.LoginProgress) LoginView {
	v := LoginView{Server: server, State: string(p.Phase), Error: p.Err, Issuer: p.Issuer, Before: p.Before}
	if p.Phase == oauth.Waiting {
		v.URL, v.Code, v.ExpiresAt = p.URL, p.Code, timeOrNil(p.Expires)
	}
	return v
}

// LoginRequest starts a login.
type LoginRequest struct {
	ServerRef
	Headless bool `json:"headless,omitempty" doc:"Whether the user's browser runs on another machine: the login uses a device code if the authorization server supports it."`
}

// LoginCompletion completes a login.
type LoginCompletion struct {
	ServerRef
	URL string `json:"url" required:"true" doc:"The last URL in the user's browser. It contains the answer of the authorization server."`
}

// ServerLogin describes a login that needs attention.
type ServerLogin struct {
	State  string `json:"state" enum:"needed,waiting,retrying" doc:"needed: the user must log in. waiting: a login is in progress. retrying: the authorization server is not available."`
	Reason string `json:"reason" doc:"The reason, without text from a server."`
	Detail string `json:"detail,omitempty" doc:"The error of the authorization server. Absent if there is none."`
	Remedy string `json:"remedy" doc:"What to do."`
}

// loginView returns the description of the login to a server; nil if it works.
func (g *Gateway) loginView(server string) *ServerLogin {
	s := g.Logins.Status(server)
	v := &ServerLogin{State: string(s.State), Reason: s.Reason, Detail: redact.Text(s.Detail), Remedy: LoginCommand(server)}
	switch {
	case s.State == oauth.LoginWorks:
		return nil
	case g.Logins.InProgress(server):
		v.State, v.Remedy = string(oauth.Waiting), "Complete the login in your browser, or start it again: "+v.Remedy
	case s.State == oauth.LoginRetrying:
		v.Remedy = "Wait until the authorization server is available again. If this persists, log in again: " + v.Remedy
	}
	return v
}

// LoginCommand returns the command that logs in to a server.
func LoginCommand(server string) string { return "mcpproxy login " + ShellQuote(server) }

// oauthAccount returns the OAuth account of a server.
func (g *Gateway) oauthAccount(name string) (*oauth.Account, error) {
	if _, err := g.findServer(name); err != nil {
		return nil, err
	}
	if a := g.Logins.Account(name); a != nil {
		return a, nil
	}
	return nil, problem.Newf(problem.InvalidRequest, "Server '%s' does not support a login.", name).
		WithHint("Only an enabled server with a url that is not quarantined, and whose headers have no Authorization, supports logins.")
}

// logoutTimeout limits the duration of the logout from a removed server.
const logoutTimeout = 5 * time.Second

// removeServerAndLogin removes a server, then deletes its login.
func (g *Gateway) removeServerAndLogin(ctx context.Context, name string, remove func() error) error {
	a := g.Logins.Account(name)
	if err := remove(); a == nil || err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, logoutTimeout)
	defer cancel()
	if err := a.Logout(ctx); err != nil {
		g.Logger.Warn("the login to a removed server was not deleted", "server", name, "error", err)
	}
	return nil
}

// oauthAccountIfCallerIsUser is like oauthAccount, for operations that only a user may perform.
func (g *Gateway) oauthAccountIfCallerIsUser(c Caller, name, what string) (*oauth.Account, error) {
	if c.Actor.Kind != auth.Admin {
		return nil, problem.Newf(problem.Forbidden, "Only the user can %s.", what).WithHint("Use the command line, or REST with the key.")
	}
	return g.oauthAccount(name)
}

// LoginToServer starts a login to a server, or returns the login in progress. The server reconnects after the login.
func (g *Gateway) LoginToServer(ctx context.Context, c Caller, in LoginRequest) (LoginView, error) {
	a, err := g.oauthAccountIfCallerIsUser(c, in.Name, "log in to a server")
	if err != nil {
		if problem.From(err).Code == problem.Forbidden {
			g.Logins.RequestLogin(in.Name)
		}
		return LoginView{}, err
	}
	progress, err := a.BeginLogin(ctx, in.Headless, func(ctx context.Context) {
		g.recordLoginOrLogout(in.Name, "login", c)
		g.reconnectAfterLogin(ctx, in.Name)
	})
	if err != nil {
		return LoginView{}, err
	}
	return toLoginView(in.Name, progress), nil
}

// reconnectAfterLogin reconnects a server and waits until it is ready or has failed, so that calls work when the login
// is reported. It ends no call in flight if that is possible.
func (g *Gateway) reconnectAfterLogin(ctx context.Context, name string) {
	asked := time.Now()
	err := g.Upstreams.RestartWhenDrained(ctx, name, func() error { return nil })
	if err != nil {
		asked = time.Now()
		err = g.Upstreams.Restart(name)
	}
	if err == nil {
		err = g.waitForServer(ctx, name, asked)
	}
	if err != nil {
		g.Logger.Warn("a server was not connected after its login", "server", name, "error", err)
	}
}

// CompleteLogin completes the login in progress to a server with the URL at which the user's browser has ended.
func (g *Gateway) CompleteLogin(_ context.Context, c Caller, in LoginCompletion) (LoginView, error) {
	a, err := g.oauthAccountIfCallerIsUser(c, in.Name, "log in to a server")
	if err == nil {
		err = a.CompleteLogin(in.URL)
	}
	if err != nil {
		return LoginView{}, err
	}
	progress, _ := a.Progress()
	return toLoginView(in.Name, progress), nil
}

// LoginProgress returns the progress of the last login to a server.
func (g *Gateway) LoginProgress(_ context.Context, _ Caller, in ServerRef) (LoginView, error) {
	a, err := g.oauthAccount(in.Name)
	if err != nil {
		return LoginView{}, err
	}
	progress, ok := a.Progress()
	if !ok {
		return LoginView{}, problem.Newf(problem.NotFound, "No login to server '%s' was started.", in.Name).
			WithHint("Start one with `mcpproxy login " + in.Name + "`.")
	}
	return toLoginView(in.Name, progress), nil
}

// LogoutFromServer deletes the login to a server and reconnects it.
func (g *Gateway) LogoutFromServer(ctx context.Context, c Caller, in ServerRef) (ServerView, error) {
	a, err := g.oauthAccountIfCallerIsUser(c, in.Name, "log out of a server")
	if err != nil {
		return ServerView{}, err
	}
	if err := a.Logout(ctx); err != nil {
		return ServerView{}, err
	}
	g.recordLoginOrLogout(in.Name, "logout", c)
	if err := g.Upstreams.Restart(in.Name); err != nil {
		return ServerView{}, err
	}
	return g.Server(ctx, c, in)
}

// recordLoginOrLogout records a login or logout.
func (g *Gateway) recordLoginOrLogout(server, action string, c Caller) {
	if err := g.recordActionOnServer(c, server, action); err != nil {
		g.Logger.Error("a login could not be recorded", "server", server, "action", action, "error", err)
	}
}
