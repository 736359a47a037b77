package ops

import (
	"context"
	"sync"
	"time"

	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/upstream/process"
)

// UsageLog reads the usage of servers and tools. activity.Log implements it.
type UsageLog interface {
	List(ctx context.Context, f activity.Filter) (activity.RecordPage, error)
	ServerUse(ctx context.Context, now time.Time, latest int) (map[string]activity.ServerUsage, error)
	ToolUse(ctx context.Context) (map[[2]string]activity.ToolUsage, error)
}

// ServerLogSource reads the logs of servers. upstream.Set implements it.
type ServerLogSource interface {
	LogTail(server string, lines int) ([]process.LogLine, error)
	NewLogReader(server string) *process.LogReader
}

// Inspector implements the read-only operations for the web UI: servers and tools with their usage, logs and search.
type Inspector struct {
	gateway   *Gateway
	log       UsageLog
	upstreams ServerLogSource
	lists     toolListCache
	follows   chan struct{} // semaphore that limits the followed logs
	closed    chan struct{}
	close     sync.Once
}

// maxFollows limits the number of logs that are followed at the same time.
const maxFollows = 64

// NewInspector returns an Inspector.
func NewInspector(g *Gateway, log UsageLog, upstreams ServerLogSource) *Inspector {
	return &Inspector{gateway: g, log: log, upstreams: upstreams, follows: make(chan struct{}, maxFollows), closed: make(chan struct{})}
}

// Close ends all streams of followed logs.
func (i *Inspector) Close() { i.close.Do(func() { close(i.closed) }) }

// logTimeout limits how long a list waits for the activity log. After a timeout, the list contains no usage.
const logTimeout = time.Second

// estimateTokens estimates the number of tokens of JSON with this size, at four bytes per token. For tool definitions,
// tokenizers use 3.5 to 4.5 bytes per token.
func estimateTokens(bytes int) int { return (bytes + 3) / 4 }
