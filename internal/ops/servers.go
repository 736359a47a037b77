package ops

import (
	"cmp"
	"context"
	"slices"
	"time"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/redact"
	"mcpproxy/internal/upstream"
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
		v.Command, v.Args, v.URL, v.Pin = shown.Command, shown.Args, shown.URL, shown.Pin
		v.Trust, v.Lazy = string(c.Trust), c.Lazy
		v.Unhinted = countUnhintedTools(s, c)
		v.Session = string(c.Session)
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
