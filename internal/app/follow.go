package app

import (
	"log/slog"
	"strings"
	"sync"

	"mcpproxy/internal/activity"
	"mcpproxy/internal/catalog"
	"mcpproxy/internal/config"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/upstream"
)

// specs are the servers that may be contacted, as they are launched.
func specs(cfg *config.Config) []upstream.Spec {
	var all []upstream.Spec
	for _, s := range cfg.Servers {
		if !s.Enabled || s.Quarantined {
			continue
		}
		all = append(all, upstream.Spec{
			Name: s.Name, Transport: upstream.Transport(s.Protocol),
			Command: s.Command, Args: s.Args, Env: s.Env, Dir: s.WorkingDir,
			URL: s.URL, Headers: s.Headers, ConnectTimeout: cfg.ConnectTimeout,
		})
	}
	return all
}

// applier brings a changed configuration to the upstreams and the logger. It
// comes last, so that a tool is locked before its server is touched.
type applier struct{ d *daemon }

// Prepare implements config.Component.
func (a applier) Prepare(next *config.Config) (func(), error) {
	wanted := specs(next)
	return func() {
		a.d.upstreams.Apply(wanted)
		a.d.level.Set(level(next.LogLevel))
	}, nil
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
