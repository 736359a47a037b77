// Package gateway is every operation of the product as a method: finding tools,
// reading a large result, looking at servers, the log and the status, and what a
// person decides about servers and tools. All servers at once are here, too.
//
// It guarantees that nobody but a person decides what may be called or started,
// on record before it happens, and that what is shown and found is what the
// catalog says now. It calls no tool but through package door, and it knows no
// protocol: MCP, REST and the CLI translate to and from its types.
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
	"mcpproxy/internal/catalog"
	"mcpproxy/internal/config"
	"mcpproxy/internal/door"
	"mcpproxy/internal/oauth"
	"mcpproxy/internal/offers"
	"mcpproxy/internal/search"
	"mcpproxy/internal/session"
	"mcpproxy/internal/store"
	"mcpproxy/internal/upstream"
)

// Upstreams is what the gateway needs of upstream.Set.
type Upstreams interface {
	offers.Source
	Surface(server string) session.Surface
	Restart(server string) error
	RestartQuietly(ctx context.Context, server string, begin func() error) error
	LogTail(server string, lines int) ([]string, error)
	Progress(server string) upstream.Progress
}

// Log is what the gateway needs of activity.Log.
type Log interface {
	door.Log
	Append(r *activity.Record) error
	List(ctx context.Context, f activity.Filter) (activity.Page, error)
	Get(ctx context.Context, idOrPrefix string) (activity.Record, error)
	Health() activity.Health
}

// Results keeps the whole of results that were cut.
type Results interface {
	door.Results
	GetResult(ctx context.Context, handle string) (store.StoredResult, error)
}

// Editor changes the configuration file, and applies what it changed before it
// returns. See config.Live.
type Editor interface {
	AddServer(name string, s config.ServerEdit) error
	RemoveServer(name string) error
	SetServer(name, field string, value json.RawMessage) error
}

// Deps is what a Gateway is made of. Config returns the configuration that is
// live; everything else is told in the fields' types.
type Deps struct {
	Config    func() *config.Config
	Editor    Editor
	Catalog   *catalog.Catalog
	Book      *approval.Book
	Upstreams Upstreams
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

// Gateway is the operations. It is a config.Component.
type Gateway struct {
	Deps
	door       *door.Door
	offers     *offers.Guard
	searches   *searches
	habits     atomic.Pointer[search.Habits]
	everything atomic.Pointer[allTools] // by their names among all
	naming     sync.Mutex               // one at a time makes everything anew
}

// New makes a Gateway.
func New(d Deps) *Gateway {
	g := &Gateway{Deps: d, searches: newSearches(), offers: offers.New(d.Catalog, d.Upstreams, d.Logger)}
	g.door = door.New(door.Deps{
		Config: d.Config, Catalog: d.Catalog, Servers: d.Upstreams.Surface, Offers: g.offers, Log: d.Log, Results: d.Results,
		NeedsLogin: g.needsLogin, Found: g.searches.found, Logger: d.Logger,
	})
	return g
}

// Prepare implements config.Component.
func (g *Gateway) Prepare(next *config.Config) (func(), error) { return g.door.Prepare(next) }

// FollowOffers has what servers offer beside tools listed and judged whenever
// they connect or say that it has changed, until ctx ends.
func (g *Gateway) FollowOffers(ctx context.Context) { g.offers.Follow(ctx) }
