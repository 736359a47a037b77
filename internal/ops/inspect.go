package ops

import (
	"context"
	"encoding/json"
	"io"
	"slices"
	"sync"
	"time"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/config"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/store/redact"
	"mcpproxy/internal/upstream"
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

// ServerRow is a server in the list.
type ServerRow struct {
	ServerView
	Calls   *ServerCalls `json:"calls,omitempty" doc:"Statistics of the server's calls in the last 24 hours. Absent if there were none, or if the log cannot be read."`
	Waiting int          `json:"waiting,omitempty" doc:"The number of its tools, prompts, resources, templates and instructions that wait for approval."`
}

// ServerCalls summarizes the calls of a server.
type ServerCalls struct {
	Hours  []HourCalls `json:"hours" doc:"The number of calls in each of the last 24 hours, oldest first. The last one is the current hour."`
	Calls  int64       `json:"calls" doc:"The number of calls that ended in the last 24 hours."`
	Errors int64       `json:"errors" doc:"The number of these calls that failed."`
	P95    int64       `json:"p95_ms" format:"int64" doc:"The 95th percentile of the duration in milliseconds, accurate to 4 %."`
}

// HourCalls counts the calls of one hour.
type HourCalls struct {
	Calls  int64 `json:"calls"`
	Errors int64 `json:"errors"`
}

// ServerList lists all servers.
type ServerList struct {
	Servers []ServerRow `json:"servers"`
	Paused  bool        `json:"paused,omitempty" doc:"Whether MCPProxy rejects all calls, because a user has paused them. Absent if calls are allowed."`
}

// ServerDetail is one server with its configuration.
type ServerDetail struct {
	ServerRow
	Launch          *LaunchView     `json:"launch,omitempty" doc:"How the server is started or reached. Secrets are masked."`
	EnabledTools    []string        `json:"enabled_tools,omitempty" doc:"Names or patterns of the tools that may be called. All other tools are disabled."`
	DisabledTools   []string        `json:"disabled_tools,omitempty" doc:"Names or patterns of tools that may not be called."`
	InferHints      string          `json:"infer_hints,omitempty" words:"infer" doc:"How MCPProxy treats tools without hints of this server. Absent if the server uses the global setting."`
	HintOverrides   json.RawMessage `json:"hint_overrides,omitempty" type:"object" doc:"Hints that replace those of the server, by name or pattern of tools, in file order. If several patterns match a tool, the last one that sets a hint applies."`
	CallTimeout     string          `json:"call_timeout,omitempty" doc:"The maximum duration of a call. Absent if the server uses the global setting."`
	DefinitionBytes int             `json:"definition_bytes,omitempty" doc:"The size of all its tool definitions in bytes, as the server lists them."`
	Availability    []Turn          `json:"availability,omitempty" doc:"The states of the server in the last 24 hours, oldest first, at most the last 1,000. The first entry can be older: it is the state at the start of the 24 hours, if known."`
}

// Turn is a change of a server's state, with its time.
type Turn struct {
	At    time.Time `json:"at"`
	State string    `json:"state" doc:"stopped, ready, failed or idle."`
}

// hoursShown is the number of hours with call counts.
const hoursShown = 24

// Servers returns all configured and proposed servers, sorted by name.
func (i *Inspector) Servers(ctx context.Context, c Caller, in Nothing) (ServerList, error) {
	all, err := i.gateway.Servers(ctx, c, in)
	if err != nil {
		return ServerList{}, err
	}
	snapshot, use := i.gateway.Catalog.Current(), i.loadServerUsage(ctx)
	list := ServerList{Servers: make([]ServerRow, 0, len(all.Servers)), Paused: all.Paused}
	for _, v := range all.Servers {
		list.Servers = append(list.Servers, i.serverRow(v, snapshot.Server(v.Name), use))
	}
	return list, nil
}

// Server returns one server, or SERVER_NOT_FOUND with similar names.
func (i *Inspector) Server(ctx context.Context, c Caller, in ServerRef) (ServerDetail, error) {
	v, err := i.gateway.Server(ctx, c, in)
	if err != nil {
		return ServerDetail{}, err
	}
	s := i.gateway.Catalog.Current().Server(in.Name)
	d := ServerDetail{ServerRow: i.serverRow(v, s, i.loadServerUsage(ctx)), Availability: i.availabilityHistory(ctx, in.Name)}
	if s != nil {
		d.DefinitionBytes = s.TotalDefinitionSize()
	}
	if configured := i.gateway.Config().Server(in.Name); configured != nil {
		d.setConfiguration(configured)
		return d, nil
	}
	for _, p := range i.gateway.Proposals() {
		if p.Config.Name == in.Name {
			d.setConfiguration(&p.Config)
		}
	}
	return d, nil
}

// setConfiguration adds the server's configuration to the detail view.
func (d *ServerDetail) setConfiguration(s *config.Server) {
	launch := newLaunchView(s.MaskedLaunch())
	d.Launch, d.EnabledTools, d.DisabledTools, d.InferHints = &launch, s.EnabledTools, s.DisabledTools, string(s.InferHints)
	for n, o := range s.HintOverrides {
		d.HintOverrides = append(d.HintOverrides, "{,"[min(n, 1)])
		d.HintOverrides = append(wirejson.AppendString(d.HintOverrides, o.Pattern), ':')
		d.HintOverrides = o.Hints.AppendJSON(d.HintOverrides)
	}
	if d.HintOverrides != nil {
		d.HintOverrides = append(d.HintOverrides, '}')
	}
	if s.CallTimeout > 0 {
		d.CallTimeout = s.CallTimeout.String()
	}
}

// serverRow returns a server with its usage and the number of waiting definitions. s is nil for a proposed server.
func (i *Inspector) serverRow(v ServerView, s *catalog.Server, use map[string]activity.ServerUsage) ServerRow {
	row := ServerRow{ServerView: v}
	if s == nil {
		return row
	}
	if decided := i.gateway.Book.ServerView(s.Name); decided.IsLoaded() {
		for _, t := range s.Tools {
			if !decided.ToolDecisions(t.ID.Tool).Approves(t.Fingerprint()) {
				row.Waiting++
			}
		}
	}
	for _, n := range i.gateway.Catalog.CurrentPrimitives(s.Name).Counts() {
		row.Waiting += n.Waiting
	}
	if u, called := use[s.Name]; called {
		row.Calls = &ServerCalls{P95: u.P95.Milliseconds()}
		for _, h := range u.Hours {
			row.Calls.Hours = append(row.Calls.Hours, HourCalls(h))
			row.Calls.Calls, row.Calls.Errors = row.Calls.Calls+h.Calls, row.Calls.Errors+h.Errors
		}
	}
	return row
}

// loadServerUsage returns the usage of all servers, or nil if the log cannot be read.
func (i *Inspector) loadServerUsage(ctx context.Context) map[string]activity.ServerUsage {
	ctx, cancel := context.WithTimeout(ctx, logTimeout)
	defer cancel()
	use, _ := i.log.ServerUse(ctx, time.Now(), hoursShown)
	return use
}

// availabilityHistory returns the state changes of a server that the log contains.
func (i *Inspector) availabilityHistory(ctx context.Context, server string) (turns []Turn) {
	ctx, cancel := context.WithTimeout(ctx, logTimeout)
	defer cancel()
	since := time.Now().Add(-hoursShown * time.Hour)
	f := activity.Filter{Types: []activity.Type{activity.ServerChange}, Servers: []string{server}, Since: since, Limit: activity.MaxLimit}
	within, err := i.log.List(ctx, f)
	if err != nil {
		return nil
	}
	for n := range within.Records {
		if t, ok := stateChangeOf(&within.Records[n]); ok {
			turns = append(turns, t)
		}
	}
	f.Since, f.Until, f.Limit = time.Time{}, since, activity.DefaultLimit
	if before, err := i.log.List(ctx, f); err == nil && within.NextCursor == "" {
		for n := range before.Records {
			if t, ok := stateChangeOf(&before.Records[n]); ok {
				turns = append(turns, t)
				break
			}
		}
	}
	slices.Reverse(turns)
	return slices.CompactFunc(turns, func(a, b Turn) bool { return a.State == b.State })
}

// stateChangeOf returns the state change in a record, if it contains one.
func stateChangeOf(r *activity.Record) (Turn, bool) {
	switch phase := upstream.Phase(r.Metadata.Action); phase {
	case upstream.Stopped, upstream.Ready, upstream.Failed, upstream.Idle:
		return Turn{r.Timestamp, string(phase)}, true
	}
	return Turn{}, false
}

// LogQuery selects the last lines of a server's log.
type LogQuery struct {
	ServerRef
	Lines int `query:"lines" min:"1" max:"10000" default:"100" doc:"The maximum number of lines, from the end of the log."`
}

// LogTail contains the last lines of a server's log.
type LogTail struct {
	Server  string    `json:"server"`
	Lines   []string  `json:"lines" doc:"The lines for display, oldest first. Lines that do not come from stderr are marked."`
	Entries []LogLine `json:"entries" doc:"The same lines with their details."`
}

// LogLine is a line of a server's log.
type LogLine struct {
	At     *time.Time `json:"at,omitempty" doc:"The time at which the line was complete. Absent for an incomplete line, and for lines of old versions that stored no times."`
	Stream string     `json:"stream" enum:"stderr,stdout,mcpproxy" doc:"stderr: output of the server on stderr. stdout: its output on stdout that is not a message. mcpproxy: a note of MCPProxy."`
	Text   string     `json:"text"`
}

// ServerLogs returns the last lines of a server's log.
func (i *Inspector) ServerLogs(_ context.Context, _ Caller, in LogQuery) (LogTail, error) {
	if _, err := i.gateway.findServer(in.Name); err != nil {
		return LogTail{}, err
	}
	last, err := i.upstreams.LogTail(in.Name, in.Lines)
	if err != nil {
		return LogTail{}, err
	}
	tail := LogTail{Server: in.Name, Lines: make([]string, len(last)), Entries: make([]LogLine, len(last))}
	for n := range last {
		tail.Entries[n] = toMaskedLogLine(&last[n])
		tail.Lines[n] = last[n].String()
	}
	return tail, nil
}

// toMaskedLogLine converts a log line and masks secrets.
func toMaskedLogLine(l *process.LogLine) LogLine {
	l.Text = redact.Text(l.Text)
	return LogLine{At: timeOrNil(l.At), Stream: string(l.Stream), Text: l.Text}
}

// The poll interval of a followed log, and the interval of pings on an idle stream.
const (
	followInterval = 250 * time.Millisecond
	pingInterval   = 15 * time.Second
)

// FollowLogs streams the last lines of a server's log, then new lines, as events. The stream ends when the server is
// removed.
func (i *Inspector) FollowLogs(_ context.Context, _ Caller, in LogQuery) (StreamFunc, error) {
	if _, err := i.gateway.findServer(in.Name); err != nil {
		return nil, err
	}
	return func(ctx context.Context, w io.Writer) error {
		select {
		case i.follows <- struct{}{}:
			defer func() { <-i.follows }()
		default:
			return problem.Newf(problem.Overloaded, "%d logs are being followed, which is the limit.", maxFollows).
				WithHint("Close a page that shows a log, or read its end: GET /servers/{name}/logs.")
		}
		log := i.upstreams.NewLogReader(in.Name)
		lines, err := log.ReadLast(in.Lines)
		if err == nil {
			err = writeLogEvents(w, lines)
		}
		look := time.NewTicker(followInterval)
		defer look.Stop()
		for wrote := time.Now(); err == nil; {
			select {
			case <-ctx.Done():
				return nil
			case <-i.closed:
				return nil
			case <-look.C:
			}
			_, gone := i.gateway.findServer(in.Name)
			for {
				if lines, err = log.ReadNew(); err != nil || len(lines) == 0 {
					break
				}
				wrote = time.Now()
				if err = writeLogEvents(w, lines); err != nil || ctx.Err() != nil {
					return err
				}
			}
			if err == nil && gone != nil {
				return nil
			}
			if err == nil && time.Since(wrote) >= pingInterval {
				wrote, err = time.Now(), writeLogEvents(w, nil)
			}
		}
		return err
	}, nil
}

// writeLogEvents writes an event for each line, or a ping comment if there are no lines.
func writeLogEvents(w io.Writer, lines []process.LogLine) error {
	var out []byte
	for n := range lines {
		data, err := wirejson.MarshalWithoutHTMLEscape(toMaskedLogLine(&lines[n]))
		if err != nil {
			return err
		}
		out = append(append(append(out, "data: "...), data...), "\n\n"...)
	}
	if out == nil {
		out = []byte(": ping\n\n")
	}
	_, err := w.Write(out)
	return err
}
