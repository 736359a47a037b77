package ops

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/config"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/upstream"
)

// ServerRow is a server in the list.
type ServerRow struct {
	ServerView
	Calls   *ServerCalls `json:"calls,omitempty" doc:"How the server was called in the last 24 hours. Absent when it was not, or the log cannot be read."`
	Waiting int          `json:"waiting,omitempty" doc:"Number of its tools, prompts, resources, templates and instructions that wait for approval."`
}

// ServerCalls summarizes the calls of a server.
type ServerCalls struct {
	Hours  []HourCalls `json:"hours" doc:"24, oldest first; the last one is the hour that it is now."`
	Calls  int64       `json:"calls" doc:"Calls that have ended, in these hours."`
	Errors int64       `json:"errors" doc:"Those of them that failed."`
	P95    int64       `json:"p95_ms" format:"int64" doc:"At most one call in twenty took longer, to within 4 %."`
}

// HourCalls counts the calls of one hour.
type HourCalls struct {
	Calls  int64 `json:"calls"`
	Errors int64 `json:"errors"`
}

// ServerList lists all servers.
type ServerList struct {
	Servers []ServerRow `json:"servers"`
}

// ServerDetail is one server with its configuration.
type ServerDetail struct {
	ServerRow
	Launch          *LaunchView     `json:"launch,omitempty" doc:"How it is launched or reached; secrets are masked."`
	EnabledTools    []string        `json:"enabled_tools,omitempty" doc:"The only tools that may be called, names or patterns."`
	DisabledTools   []string        `json:"disabled_tools,omitempty" doc:"Tools that may not be called, names or patterns."`
	InferHints      string          `json:"infer_hints,omitempty" words:"infer" doc:"What is made of tools that carry no hints, when it was chosen for this server."`
	HintOverrides   json.RawMessage `json:"hint_overrides,omitempty" type:"object" doc:"Names or patterns of tools with the hints that replace the server's, in file order. If several match a tool, the last one that sets a hint counts."`
	CallTimeout     string          `json:"call_timeout,omitempty" doc:"How long a call may take, when it was chosen for this server."`
	DefinitionBytes int             `json:"definition_bytes,omitempty" doc:"Of all definitions of its tools, as it lists them."`
	Availability    []Turn          `json:"availability,omitempty" doc:"Its states in the last 24 hours by the log, oldest first, at most the last 1,000. The first one is that in which these hours began, where it is known, with its own time."`
}

// Turn is a change of a server's state.
type Turn struct {
	At    time.Time `json:"at"`
	State string    `json:"state" doc:"stopped, ready, failed or idle."`
}

// hoursShown is the number of hours shown.
const hoursShown = 24

// Servers returns all configured and proposed servers by name.
func (i *Inspector) Servers(ctx context.Context, c Caller, in Nothing) (ServerList, error) {
	all, err := i.gateway.Servers(ctx, c, in)
	if err != nil {
		return ServerList{}, err
	}
	snapshot, use := i.gateway.Catalog.Current(), i.loadServerUsage(ctx)
	list := ServerList{make([]ServerRow, 0, len(all.Servers))}
	for _, v := range all.Servers {
		list.Servers = append(list.Servers, i.serverRow(v, snapshot.Server(v.Name), use))
	}
	return list, nil
}

// Server returns one server, or SERVER_NOT_FOUND with the nearest names.
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

// setConfiguration adds the server's configuration.
func (d *ServerDetail) setConfiguration(s *config.Server) {
	launch := LaunchView(s.MaskedLaunch())
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

// loadServerUsage returns how servers were called; nil when the log cannot be read.
func (i *Inspector) loadServerUsage(ctx context.Context) map[string]activity.ServerUsage {
	ctx, cancel := context.WithTimeout(ctx, logTimeout)
	defer cancel()
	use, _ := i.log.ServerUse(ctx, time.Now(), hoursShown)
	return use
}

// availabilityHistory returns the state changes of a server, as far as the log has them.
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

// stateChangeOf returns the state change in a record, if it has one.
func stateChangeOf(r *activity.Record) (Turn, bool) {
	switch phase := upstream.Phase(r.Metadata.Action); phase {
	case upstream.Stopped, upstream.Ready, upstream.Failed, upstream.Idle:
		return Turn{r.Timestamp, string(phase)}, true
	}
	return Turn{}, false
}
