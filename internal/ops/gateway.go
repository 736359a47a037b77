package ops

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"time"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/catalog/search"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config"
	"mcpproxy/internal/gate"
	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/gate/presence"
	"mcpproxy/internal/mcp/result"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/upstream"
	"mcpproxy/internal/upstream/oauth"
	"mcpproxy/internal/upstream/sandbox"
)

// ServerSupervisor restarts servers and reports the progress of their starts. upstream.Set implements it.
type ServerSupervisor interface {
	Restart(server string) error
	RestartWhenDrained(ctx context.Context, server string, begin func() error) error
	StartProgress(server string) upstream.StartProgress
	Deviations(server string) []string
	SessionNeeds(server string) []upstream.KnownNeed
}

// ActivityLog writes and reads activity records. activity.Log implements it.
type ActivityLog interface {
	Begin(r *activity.Record) error
	End(id string, o activity.Outcome) error
	Append(r *activity.Record) error
	List(ctx context.Context, f activity.Filter) (activity.RecordPage, error)
	Get(ctx context.Context, idOrPrefix string) (activity.Record, error)
	Health() activity.Health
	CallsByServer(ctx context.Context, since time.Time) (map[string]int64, error)
}

// GatewayDeps are the dependencies of a Gateway.
type GatewayDeps struct {
	*gate.Gate // calls tools, and provides the configuration and the catalog
	Book       *approval.Book
	Upstreams  ServerSupervisor
	Log        ActivityLog
	Logins     *oauth.Accounts // nil if no server needs a login
	About      DaemonInfo
	Presence   *presence.Gate  // requires proof of presence; nil if none is required
	Sandboxes  *sandbox.System // nil if this is unknown
	// ObserveSearch is called with the duration of each search.
	ObserveSearch func(time.Duration)
}

// DaemonInfo describes the process for Status. Its functions are called for each request.
type DaemonInfo struct {
	Version         string
	StartedAt       time.Time
	ConfigPath      string
	Surfaces        func() []Surface
	ConfigError     func() error
	NeedsRestart    func() []string
	Unconfirmed     func() config.UnconfirmedChanges // nil if nothing waits for confirmation
	Warnings        func() []string
	CountHeld       func(ctx context.Context) StatusHeld
	LoadedToolBytes func() int // size of the tool list that agents get on /mcp, in bytes
}

// Gateway implements the operations that read state and call tools.
type Gateway struct {
	GatewayDeps
	habits atomic.Pointer[map[string]*search.Habits] // by learner
	calls  atomic.Pointer[map[string]int64]          // calls per server
}

// NewGateway returns a Gateway.
func NewGateway(d GatewayDeps) *Gateway { return &Gateway{GatewayDeps: d} }

// recordActionOnServer records an action that affects a server.
func (g *Gateway) recordActionOnServer(c Caller, server, action string) error {
	r := newActionRecord(c, activity.ServerChange, tool.ID{Server: server}, action, "")
	r.Status = activity.Success
	return g.Log.Append(&r)
}

// findServer returns a configured server, or SERVER_NOT_FOUND with similar names.
func (g *Gateway) findServer(name string) (*catalog.Server, error) {
	if s := g.Catalog.Current().Server(name); s != nil {
		return s, nil
	}
	return nil, g.serverNotFoundError(name)
}

// findServerInScope is like findServer, but limited to the caller's scope. For a server outside of the scope, it
// returns OUT_OF_SCOPE, whether or not the server exists.
func (g *Gateway) findServerInScope(c *Caller, name string) (*catalog.Server, error) {
	if p := gate.OutOfScopeProblem(c, name); p != nil {
		return nil, p
	}
	snapshot := g.Catalog.Current().ScopedTo(c.Scope())
	if s := snapshot.Server(name); s != nil {
		return s, nil
	}
	return nil, gate.ServerNotFoundProblem(snapshot, name)
}

// serverNotFoundError returns the problem for an unknown server name, with similar names.
func (g *Gateway) serverNotFoundError(name string) error {
	return gate.ServerNotFoundProblem(g.Catalog.Current(), name)
}

// findTool returns a tool. If it does not exist, it returns SERVER_NOT_FOUND or TOOL_NOT_FOUND with similar names.
func (g *Gateway) findTool(id tool.ID) (*catalog.Tool, error) {
	snapshot := g.Catalog.Current()
	t := snapshot.Tool(id)
	switch {
	case t != nil:
		return t, nil
	case snapshot.Server(id.Server) == nil:
		return nil, g.serverNotFoundError(id.Server)
	}
	p := problem.Newf(problem.ToolNotFound, "Tool '%s' not found", problem.ClipName(id.String())).
		WithHint("See the tools with `mcpproxy tools list --server " + id.Server + "`.")
	if near := snapshot.SuggestIDs(id); len(near) > 0 {
		p.With("nearest", near)
	}
	return nil, p
}

// claimToSign is a statement that a user signs.
type claimToSign = presence.Claim

// newActionRecord returns the activity record for an action of the caller.
func newActionRecord(c Caller, kind activity.Type, id tool.ID, action, detail string) activity.Record {
	r := activity.Record{Type: kind, ServerName: id.Server, ToolName: id.Tool, Metadata: activity.Metadata{Action: action, Detail: detail}}
	r.SetCaller(&c)
	return r
}

// runConfigChange is like runUserAction, for a change to the configuration or other files.
func (g *Gateway) runConfigChange(c Caller, action, detail string, do func() error) error {
	return g.runUserAction(c, newActionRecord(c, activity.ConfigChange, tool.ID{}, action, detail), do)
}

// runUserAction runs an action that only a user may do. The record with its author is durable before anything changes.
// The outcome is recorded afterwards.
func (g *Gateway) runUserAction(c Caller, r activity.Record, do func() error) error {
	if c.IsUser() {
		return g.runAndRecord(r, do)
	}
	p := problem.New(problem.Forbidden, "Only the user can do this, with the mcpproxy command, the web UI, or the API key.",
		"Ask the user to do it.")
	r.Status, r.ErrorMessage, r.Metadata.ErrorCode = activity.Blocked, p.Message, string(p.Code)
	if err := g.Log.Append(&r); err != nil {
		g.Logger.Error("a refusal could not be recorded", "action", r.Metadata.Action, "error", err)
	}
	return p
}

// runAndRecord writes the begin record, runs do and writes the outcome, even if do panics.
func (g *Gateway) runAndRecord(r activity.Record, do func() error) error {
	started := time.Now()
	if err := g.Log.Begin(&r); err != nil {
		return err
	}
	outcome := activity.Outcome{Status: activity.Failed, ErrorCode: string(problem.Internal), ErrorMessage: "it panicked"}
	defer func() {
		outcome.Duration = time.Since(started)
		if err := g.Log.End(r.ID, outcome); err != nil {
			g.Logger.Error("the outcome of a decision could not be recorded", "id", r.ID, "error", err)
		}
	}()
	err := do()
	if err != nil {
		p := problem.From(err)
		outcome.ErrorCode, outcome.ErrorMessage = string(p.Code), p.Message
		if p.Code == problem.PresenceRequired {
			outcome.Status = activity.Blocked
		}
		return p
	}
	outcome.Status, outcome.ErrorCode, outcome.ErrorMessage = activity.Success, "", ""
	return nil
}

// configConfirmFunc returns a function that requires proof of presence for configuration changes that grant more
// access.
func (g *Gateway) configConfirmFunc(ctx context.Context) config.ConfirmFunc {
	return func(claims ...config.Claim) error { return g.Presence.RequireSigned(ctx, ToPresenceClaims(claims)...) }
}

// ToPresenceClaims converts claims of the configuration to claims of package presence.
func ToPresenceClaims(all []config.Claim) []presence.Claim { return mapSlice(all, toPresenceClaim) }

func toPresenceClaim(c config.Claim) presence.Claim { return presence.NewClaim(c.Words, c.Values...) }

// errDryRun aborts a change after its claims are known.
var errDryRun = errors.New("this was only tried")

// requiredClaims returns the claims that a configuration change requires, without making it.
func requiredClaims(change func(config.ConfirmFunc) error) (claims []presence.Claim, err error) {
	err = change(func(all ...config.Claim) error {
		claims = ToPresenceClaims(all)
		return errDryRun
	})
	if errors.Is(err, errDryRun) {
		err = nil
	}
	return claims, err
}

// ConfigClaimChecker adapts presence.Gate for package config.
type ConfigClaimChecker struct{ *presence.Gate }

// IsConfirmed reports whether a user has signed the claim or presence is off.
func (s ConfigClaimChecker) IsConfirmed(c config.Claim) bool {
	return s.Gate.IsConfirmed(toPresenceClaim(c))
}

// ReadResult returns a part of a stored large result as JSON. A handle is valid only for the actor of the call, and
// only while the tool is in its scope and the server is not quarantined.
func (g *Gateway) ReadResult(ctx context.Context, req ReadResultRequest) (json.RawMessage, error) {
	stored, gone := g.LoadStoredResult(ctx, &req.Caller, req.Handle)
	if gone != nil {
		return nil, gone
	}
	from := result.ReadOptions{Handle: req.Handle, Path: req.Path, Offset: req.Offset, Limit: req.Limit}
	var part result.Part
	var err error
	if e, bad := policy.ParseSelection(req.Select); bad != nil {
		return nil, bad
	} else if e != nil {
		part, err = result.ReadSelected(stored.Body, from, e)
	} else {
		part, err = result.ReadPart(stored.Body, from)
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(part)
}
