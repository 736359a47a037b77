package app

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	"mcpproxy/internal/activity"
	"mcpproxy/internal/approval"
	"mcpproxy/internal/catalog"
	"mcpproxy/internal/config"
	"mcpproxy/internal/oauth"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/tool"
	"mcpproxy/internal/upstream"
)

// specs are the servers that may be started or contacted, as they are launched.
func specs(cfg *config.Config, book *approval.Book) []upstream.Spec {
	var all []upstream.Spec
	for _, s := range cfg.Servers {
		if !catalog.MayStart(s, book.View(s.Name)) {
			continue
		}
		all = append(all, upstream.Spec{
			Name: s.Name, Transport: upstream.Transport(s.Protocol),
			Command: s.Command, Args: s.Args, Env: s.Env, Dir: s.WorkingDir,
			URL: s.URL, Headers: s.Headers, AllowPrivate: s.AllowPrivate, ConnectTimeout: cfg.ConnectTimeout, Secrets: s.Secrets(),
			Review:      catalog.Quarantined(s, book.View(s.Name)),
			IdleTimeout: cfg.IdleTimeout, Lazy: s.Lazy, TrySSE: s.TrySSE,
			Shared: s.Session == config.SessionShared,
		})
	}
	return all
}

// relaunch has those servers running that may run by the configuration and the
// approvals that are in force.
func (d *daemon) relaunch() {
	d.launching.Lock()
	defer d.launching.Unlock()
	cfg := d.live.Current()
	wanted := specs(cfg, d.book)
	d.logins.Configure(targets(cfg, wanted))
	d.upstreams.Apply(wanted)
}

// targets are those of the servers that may ask for a login: over HTTP, and
// with nothing in the configuration that says who asks.
func targets(cfg *config.Config, servers []upstream.Spec) []oauth.Target {
	configured := map[string]config.OAuth{}
	for _, s := range cfg.Servers {
		configured[s.Name] = s.OAuth
	}
	var all []oauth.Target
	for _, s := range servers {
		if s.Transport != upstream.Stdio && !s.Proves() {
			all = append(all, oauth.Target{Name: s.Name, URL: s.URL, Settings: settings(configured[s.Name], s.AllowPrivate)})
		}
	}
	return all
}

func settings(o config.OAuth, allowPrivate bool) oauth.Settings {
	return oauth.Settings{
		ClientID: o.ClientID, ClientSecret: o.ClientSecret, ClientMetadataURL: o.ClientMetadataURL,
		AuthorizationServer: o.AuthorizationServer, Scopes: o.Scopes, RedirectPort: o.RedirectPort, AllowPrivate: allowPrivate,
	}
}

// account is the account at a server, without the nil of a type in it.
func (d *daemon) account(server string) upstream.Account {
	if a := d.logins.Account(server); a != nil {
		return a
	}
	return nil
}

// applier brings a changed configuration to the upstreams and the logger. It
// comes last, so that a tool is locked before its server is touched.
type applier struct{ d *daemon }

// Prepare implements config.Component.
func (a applier) Prepare(next *config.Config) (func(), error) {
	return func() {
		a.d.relaunch() // next is in force by now
		a.d.level.Set(level(next.LogLevel))
	}, nil
}

// admitted records what became of the definitions that a server listed.
func (d *daemon) admitted(a catalog.Admission) {
	if len(a.Accepted) > 0 {
		d.record(judged(a.Server, a.Accepted, activity.Success, "accept_tools", a.Trust.By()))
	}
	if len(a.Held) > 0 {
		d.record(judged(a.Server, a.Held, activity.Blocked, "hold_tools", "system"))
	}
}

// judged is one record of what became of one or many tools.
func judged(server string, all []approval.Judgement, status activity.Status, action, actor string) activity.Record {
	names := make([]string, 0, len(all))
	for _, j := range all {
		name := j.Tool
		if j.Why != "" {
			name += " (" + string(j.Why)
			if len(j.Loosened) > 0 {
				name += ", loosens " + strings.Join(j.Loosened, ", ")
			}
			name += ")"
		}
		names = append(names, name)
	}
	r := activity.Record{Type: activity.Approval, Status: status, ServerName: server, Actor: actor,
		Metadata: activity.Metadata{Action: action, Detail: fmt.Sprintf("%d: %s", len(names), named(names))}}
	if len(all) == 1 {
		r.ToolName = all[0].Tool
	}
	return r
}

// named lists names, not all when there are many.
func named(names []string) string {
	if more := len(names) - maxNamed; more > 0 {
		names = append(slices.Clone(names[:maxNamed]), fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// configChanged records what happened to the configuration.
func (d *daemon) configChanged(c config.Change) {
	r := activity.Record{Type: activity.ConfigChange, Status: activity.Success,
		Metadata: activity.Metadata{Action: "reload", Detail: strings.Join(c.Keys, ", ")}}
	if c.Err != nil {
		r.Status, r.ErrorMessage = activity.Failed, c.Err.Error()
		r.Metadata.ErrorCode = string(problem.From(c.Err).Code)
	}
	d.record(r)
}

// recorder hands what upstreams report on to the catalog and puts the changes
// that matter on record.
type recorder struct {
	*catalog.Catalog
	log    *activity.Log
	logger *slog.Logger

	mu     sync.Mutex // guards phases
	phases map[string]upstream.Phase
}

// StateChanged implements upstream.Observer.
func (r *recorder) StateChanged(s upstream.State) {
	r.Catalog.StateChanged(s)
	if !r.turned(s) {
		return
	}
	record := activity.Record{Type: activity.ServerChange, Status: activity.Success, ServerName: s.Name,
		Actor: "system", Metadata: activity.Metadata{Action: string(s.Phase)}}
	if s.Phase == upstream.Waiting {
		record.Status, record.ErrorMessage = activity.Failed, s.LastError
	}
	if err := r.log.Append(&record); err != nil {
		r.logger.Error("a server's change could not be recorded", "server", s.Name, "error", err)
	}
}

// ToolsListed implements upstream.Observer: what a server changes of its tools
// while it is known goes on record, by name.
func (r *recorder) ToolsListed(server string, tools []tool.Definition) {
	var was []*catalog.Tool
	known := r.Catalog.Current().Server(server)
	if known != nil {
		was = known.Tools
	}
	r.Catalog.ToolsListed(server, tools)
	detail := difference(was, tools)
	if detail == "" || known == nil || !known.Listed {
		return
	}
	record := activity.Record{Type: activity.ServerChange, Status: activity.Success, ServerName: server,
		Actor: "system", Metadata: activity.Metadata{Action: "tools_changed", Detail: detail}}
	if err := r.log.Append(&record); err != nil {
		r.logger.Error("a change of a server's tools could not be recorded", "server", server, "error", err)
	}
}

// maxNamed is how many changed tools a record names.
const maxNamed = 20

// difference names the tools that were added (+), removed (-) and changed (~).
func difference(was []*catalog.Tool, now []tool.Definition) string {
	before := map[string]json.RawMessage{}
	for _, t := range was {
		before[t.ID.Tool] = t.Raw
	}
	var names []string
	for _, d := range now {
		raw, there := before[d.ID.Tool]
		switch {
		case !there:
			names = append(names, "+"+d.ID.Tool)
		case !bytes.Equal(raw, d.Raw):
			names = append(names, "~"+d.ID.Tool)
		}
		delete(before, d.ID.Tool)
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		names = append(names, "-"+name)
	}
	return named(names)
}

// turned says whether the server became ready or stopped being so. The tries
// in between are no news.
func (r *recorder) turned(s upstream.State) bool {
	if s.Phase == upstream.Connecting {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.phases == nil {
		r.phases = map[string]upstream.Phase{}
	}
	was := r.phases[s.Name]
	r.phases[s.Name] = s.Phase
	return was != s.Phase
}
