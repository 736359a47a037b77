// Package inspect is the operations that show servers and tools to people, with what
// agents do not get: how servers were called and when they could be, their logs as
// they grow, tools by the page with what each costs to load, and what a search leaves
// out because it is locked. Each operation is a method.
//
// It guarantees that what is shown is what the catalog holds now, that a search finds
// what an agent's finds in the same order, that pages of one list fit together while
// the catalog changes, and that secrets are masked. Without the log everything else is
// shown all the same. It changes and decides nothing, and is not for agents: what they
// get is package gateway's.
package inspect

import (
	"context"
	"sync"
	"time"

	"mcpproxy/internal/activity"
	"mcpproxy/internal/gateway"
	"mcpproxy/internal/process"
)

// Log is what is needed of activity.Log.
type Log interface {
	List(ctx context.Context, f activity.Filter) (activity.Page, error)
	ServerUse(ctx context.Context, now time.Time, latest int) (map[string]activity.ServerUse, error)
	ToolUse(ctx context.Context) (map[[2]string]activity.Use, error)
}

// Upstreams is what is needed of upstream.Set.
type Upstreams interface {
	LogTail(server string, lines int) ([]process.LogLine, error)
	ReadLog(server string) *process.LogReader
}

// Deps is what an Inspector is made of.
type Deps struct {
	*gateway.Gateway
	Log       Log
	Upstreams Upstreams
}

// Inspector is the operations.
type Inspector struct {
	gateway   *gateway.Gateway
	log       Log
	upstreams Upstreams
	lists     lists
	follows   chan struct{} // has a place for each log that is followed
	closed    chan struct{}
	close     sync.Once
}

// maxFollows is how many logs are followed at a time.
const maxFollows = 64

// New makes an Inspector.
func New(d Deps) *Inspector {
	return &Inspector{gateway: d.Gateway, log: d.Log, upstreams: d.Upstreams, follows: make(chan struct{}, maxFollows), closed: make(chan struct{})}
}

// Close ends what is followed.
func (i *Inspector) Close() { i.close.Do(func() { close(i.closed) }) }

// logPatience is how long is waited for what the log knows of a list: it is shown
// without when the database takes longer, or cannot be read.
const logPatience = time.Second

// tokensIn is about how many tokens JSON of so many bytes is for a model: a quarter. Tokenizers
// differ; for definitions of tools they are between three and a half and four and a half.
func tokensIn(bytes int) int { return (bytes + 3) / 4 }
