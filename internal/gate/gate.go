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
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/store"
	"mcpproxy/internal/store/activity"
)

// Log is what the gate needs of activity.Log.
type Log interface {
	Begin(r *activity.Record) error
	End(id string, o activity.Outcome) error
	Refuse(r *activity.Record) error
}

// Results keeps the whole of results that were cut, or selected from.
type Results interface {
	PutResult(ctx context.Context, r store.StoredResult) error
	GetResult(ctx context.Context, handle string) (store.StoredResult, error)
}

// Asker holds a call until a user has answered: see ask.Waiter.
type Asker interface {
	Hold(ctx context.Context, h ask.HeldCall) (ask.Pass, error)
	Knows(ctx context.Context, question string) bool
}

// Deps are the dependencies of a Gate.
type Deps struct {
	Config  func() *config.Config // that is live
	Catalog *catalog.Catalog
	Servers func(name string) session.Endpoint // what is behind the gate
	Offers  *catalog.PrimitiveGuard
	Log     Log
	Results Results
	// NeedsLogin reports whether a server asks for a login.
	NeedsLogin func(server string) bool
	// Proposed reports whether an agent has proposed a server of that name, about
	// which no person has decided.
	Proposed func(server string) bool
	// Ask holds calls that need an approval. Answer takes the answer of the client that made
	// such a call: see ops.CallApprovals.AnswerByClient.
	Ask    Asker
	Answer func(ctx context.Context, by auth.Caller, question string, k ask.Key, a ask.Answer) error
	// Presence reports whether approvals need a signature; nil: never.
	Presence func() bool
	Observer Observer // nil: nobody
	Logger   *slog.Logger
}

// Gate runs all tool calls. It is a config.Component.
type Gate struct {
	Deps
	admission  atomic.Pointer[admission]
	anonymous  *anonymous
	searches   *recentSearches
	tasks      *tasks
	rateLimits *rateLimits
}

// New returns a Gate.
func New(deps Deps) *Gate {
	g := &Gate{Deps: deps, anonymous: newAnonymous(), searches: newRecentSearches(), tasks: newTasks(), rateLimits: newRateLimits()}
	g.admission.Store(newAdmission(deps.Config(), nil))
	return g
}

// Prepare implements config.Component. Calls that are in flight keep their
// places: in the same limits where these are as before, else in the old ones.
func (g *Gate) Prepare(next *config.Config) (func(), error) {
	return func() { g.admission.Store(newAdmission(next, g.admission.Load())) }, nil
}

// Searched notes what a client has searched for and the tools that it was told,
// the best first: the records of its calls say so. told is kept.
func (g *Gate) Searched(c auth.Caller, query string, told []tool.ID) {
	g.anonymous.name(&c)
	g.searches.remember(c.SessionID, query, told)
}

// Waiting returns how many requests wait for a place.
func (g *Gate) Waiting() int { return int(g.admission.Load().waiting.Load()) }
