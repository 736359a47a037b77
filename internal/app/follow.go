package app

import (
	"fmt"
	"strings"

	"mcpproxy/internal/activity"
	"mcpproxy/internal/approval"
	"mcpproxy/internal/catalog"
	"mcpproxy/internal/config"
	"mcpproxy/internal/oauth"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/tool"
	"mcpproxy/internal/upstream"
	"mcpproxy/internal/wire"
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
func (d *daemon) account(server string) wire.Account {
	if a := d.logins.Account(server); a != nil {
		return a
	}
	return nil
}

// admitted records what became of the definitions that a server listed.
func (d *daemon) admitted(a catalog.Admission) {
	if len(a.Accepted) > 0 {
		d.record(judged(a.Server, a.Accepted, activity.Success, "accept_"+many(a.Kind), a.Trust.By()))
	}
	if len(a.Held) > 0 {
		d.record(judged(a.Server, a.Held, activity.Blocked, "hold_"+many(a.Kind), "system"))
	}
}

// many is a kind as the actions of records have it.
func many(kind tool.Kind) string {
	if kind == tool.KindInstructions {
		return kind.Word()
	}
	return kind.Word() + "s"
}

// judged is one record of what became of one or many tools, or offers of a kind.
func judged(server string, all []approval.Judgement, status activity.Status, action, actor string) activity.Record {
	names := make([]string, 0, len(all))
	for _, j := range all {
		name := j.Tool
		if j.Kind == tool.KindInstructions {
			name = "the instructions"
		}
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
	if len(all) == 1 && all[0].Kind == tool.KindTool {
		r.ToolName = all[0].Tool
	}
	return r
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
