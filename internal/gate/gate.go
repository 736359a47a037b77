package gate

import (
	"context"
	"log/slog"
	"sync/atomic"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate/ask"
	"mcpproxy/internal/gate/pause"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/store"
	"mcpproxy/internal/store/activity"
)

// ActivityLog is the part of activity.Log that the gate uses.
type ActivityLog interface {
	Begin(r *activity.Record) error
	End(id string, o activity.Outcome) error
	AppendRefusal(r *activity.Record) error
}

// ResultStore stores complete results of which the caller received only a part.
type ResultStore interface {
	PutResult(ctx context.Context, r store.StoredResult) error
	GetResult(ctx context.Context, handle string) (store.StoredResult, error)
}

// ApprovalWaiter makes a call wait until a user has answered. See ask.Waiter.
type ApprovalWaiter interface {
	AwaitApproval(ctx context.Context, h ask.HeldCall) (ask.Approval, error)
	KnowsQuestion(ctx context.Context, question string) bool
}

// Deps are the dependencies of a Gate.
type Deps struct {
	Config          func() *config.Config // the current configuration
	Catalog         *catalog.Catalog
	UpstreamSurface func(name string) session.Endpoint // the endpoint of a server, without the gate
	Offers          *catalog.PrimitiveGuard
	Log             ActivityLog
	Results         ResultStore
	Logins          ServerLogins
	// Proposed reports whether an agent has proposed a server with this name, and no user has decided yet.
	Proposed func(server string) bool
	// Ask makes calls that need an approval wait. Answer stores the answer of the client that made such a call; see
	// ops.CallApprovals.AnswerByClient.
	Ask    ApprovalWaiter
	Answer func(ctx context.Context, by auth.Caller, question string, k ask.CallKey, a ask.Answer) error
	// Pause is the kill switch.
	Pause *pause.Switch
	// Presence reports whether approvals need a signature; nil: never.
	Presence func() bool
	Observer CallObserver // may be nil
	Logger   *slog.Logger
}

// Gate runs all tool calls. It is a config.ReloadableComponent.
type Gate struct {
	Deps
	concurrency    atomic.Pointer[concurrencyLimiter]
	sessionless    *sessionIDAssigner
	searches       *recentSearches
	tasks          *taskOwners
	refusalLimiter *refusalLimiter
	loginWaits     atomic.Int64 // calls that wait for a login
}

// New returns a Gate.
func New(deps Deps) *Gate {
	g := &Gate{Deps: deps, sessionless: newSessionIDAssigner(), searches: newRecentSearches(), tasks: newTaskOwners(), refusalLimiter: newRefusalLimiter()}
	g.concurrency.Store(newConcurrencyLimiter(deps.Config(), nil))
	return g
}

// PrepareConfig implements config.ReloadableComponent. Running calls keep their slots. If a limit has changed, they
// do not count against the new one.
func (g *Gate) PrepareConfig(next *config.Config) (func(), error) {
	return func() { g.concurrency.Store(newConcurrencyLimiter(next, g.concurrency.Load())) }, nil
}

// RecordSearch stores a search of a client and the tools that it returned, best match first, for the records of the
// client's calls. It keeps the slice told.
func (g *Gate) RecordSearch(c auth.Caller, query string, told []tool.ID) {
	g.sessionless.assignSessionID(&c)
	g.searches.add(c.SessionID, query, told)
}

// QueueLength returns how many requests wait for a slot.
func (g *Gate) QueueLength() int { return int(g.concurrency.Load().waiting.Load()) }
