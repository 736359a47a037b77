// Package gateway is the one door, and every operation of the product as a
// method: calling a tool, finding tools, reading a large result, looking at
// servers, the log and the status, and what a person decides about servers and
// tools.
//
// It guarantees that Call is the only way to an upstream tool; that it decides
// (policy.Decide on the live catalog), has the record in the spool before the
// upstream is asked, and writes the outcome always, also on panic and
// cancellation; that what is forwarded is the bytes that were judged; and that
// nobody but a person decides what may be called or started, on record. It
// knows no protocol: MCP, REST and the CLI translate to and from its types.
package gateway

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"mcpproxy/internal/activity"
	"mcpproxy/internal/approval"
	"mcpproxy/internal/auth"
	"mcpproxy/internal/catalog"
	"mcpproxy/internal/config"
	"mcpproxy/internal/oauth"
	"mcpproxy/internal/search"
	"mcpproxy/internal/store"
	"mcpproxy/internal/upstream"
)

// Upstreams is what the gateway needs of upstream.Set.
type Upstreams interface {
	Call(ctx context.Context, server string, c upstream.Call) (upstream.Reply, error)
	Restart(server string) error
	LogTail(server string, lines int) ([]string, error)
}

// Log is what the gateway needs of activity.Log.
type Log interface {
	Begin(r *activity.Record) error
	End(id string, o activity.Outcome) error
	Append(r *activity.Record) error
	List(ctx context.Context, f activity.Filter) (activity.Page, error)
	Get(ctx context.Context, idOrPrefix string) (activity.Record, error)
	Health() activity.Health
}

// Results keeps the whole of results that were cut.
type Results interface {
	PutResult(ctx context.Context, r store.StoredResult) error
	GetResult(ctx context.Context, handle string) (store.StoredResult, error)
}

// Editor changes the configuration file, and applies what it changed before it
// returns. See config.Live.
type Editor interface {
	AddServer(name string, s config.ServerEdit) error
	RemoveServer(name string) error
	SetServer(name, field string, value json.RawMessage) error
}

// Deps is what a Gateway is made of. Config gives the configuration that is
// live; Relaunch starts and stops servers by what may run now; everything else
// is told in the fields' types.
type Deps struct {
	Config    func() *config.Config
	Editor    Editor
	Catalog   *catalog.Catalog
	Book      *approval.Book
	Relaunch  func()
	Upstreams Upstreams
	Relays    Relays
	Log       Log
	Results   Results
	Logins    *oauth.Keeper // nil: no server takes a login
	Logger    *slog.Logger
	About     About
}

// About is what Status tells of the process itself. The functions are asked
// each time.
type About struct {
	Version      string
	StartedAt    time.Time
	ConfigPath   string
	Surfaces     func() []Surface
	ConfigError  func() error
	NeedsRestart func() []string
	Warnings     func() []string
}

// Gateway is the one door. It is a config.Component.
type Gateway struct {
	Deps
	admission     atomic.Pointer[admission]
	conversations *conversations
	searches      *searches
	habits        atomic.Pointer[search.Habits]
	everything    atomic.Pointer[allTools] // by their names among all
	naming        sync.Mutex               // one at a time makes everything anew
	offers        offerCache
	tasks         *tasks
}

// New makes a Gateway.
func New(d Deps) *Gateway {
	g := &Gateway{Deps: d, conversations: newConversations(), searches: newSearches(), tasks: newTasks()}
	g.admission.Store(newAdmission(d.Config(), nil))
	return g
}

// Prepare implements config.Component. Calls that are in flight keep their
// places: in the same limits where these are as before, else in the old ones.
func (g *Gateway) Prepare(next *config.Config) (func(), error) {
	return func() { g.admission.Store(newAdmission(next, g.admission.Load())) }, nil
}

// Caller is who calls and from where, as the record keeps it. Without a
// SessionID the gateway gives one: see conversations.
type Caller struct {
	Actor         auth.Actor
	Source        activity.Source
	SessionID     string
	RequestID     string
	ClientName    string
	ClientVersion string
}
