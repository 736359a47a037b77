package ops

import (
	"context"
	"sync"
	"time"

	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/upstream/process"
)

// InspectorLog is what is needed of activity.Log.
type InspectorLog interface {
	List(ctx context.Context, f activity.Filter) (activity.Page, error)
	ServerUse(ctx context.Context, now time.Time, latest int) (map[string]activity.ServerUse, error)
	ToolUse(ctx context.Context) (map[[2]string]activity.Use, error)
}

// InspectorUpstreams is what is needed of upstream.Set.
type InspectorUpstreams interface {
	LogTail(server string, lines int) ([]process.LogLine, error)
	ReadLog(server string) *process.LogReader
}

// InspectorDeps is what an Inspector is made of.
type InspectorDeps struct {
	*Gateway
	Log       InspectorLog
	Upstreams InspectorUpstreams
}

// Inspector is the operations.
type Inspector struct {
	gateway   *Gateway
	log       InspectorLog
	upstreams InspectorUpstreams
	lists     lists
	follows   chan struct{} // has a place for each log that is followed
	closed    chan struct{}
	close     sync.Once
}

// maxFollows is how many logs are followed at a time.
const maxFollows = 64

// NewInspector makes an Inspector.
func NewInspector(d InspectorDeps) *Inspector {
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
