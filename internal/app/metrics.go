package app

import (
	"net/http"

	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/ops/telemetry"
)

// state is what the metrics tell of this moment.
func (d *daemon) state() telemetry.State {
	health := d.log.Health()
	s := telemetry.State{
		Waiting: d.gate.Waiting(), Sessions: d.mcp.Sessions(), Servers: map[string]int{},
		Degraded: health.Degraded, Backlog: health.Backlog, SpoolBytes: health.Spool, Records: health.Records,
	}
	var tools ops.Counts
	for _, server := range d.catalog.Current().Servers() {
		if !server.Enabled {
			s.Servers["disabled"]++
			continue
		}
		s.Servers[ops.StateOf(server)]++
		for _, t := range server.Tools {
			tools.Add(t)
		}
	}
	s.Tools = tools.ByWord()
	return s
}

// metrics answers /metrics. They name servers: where MCP needs a token or the key, so do
// they, and a token that is bound to a part of all there is may not read them.
func (d *daemon) metrics(authenticator *auth.Authenticator, profiles auth.Profiles, metrics http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if d.live.Current().RequireMCPAuth {
			who, token, err := authenticator.Actor(r)
			if err != nil || who.Kind != auth.Admin && !seesAll(token, profiles) {
				w.Header().Set("WWW-Authenticate", `Bearer realm="mcpproxy"`)
				http.Error(w, "The metrics need the key, or an agent token that is bound to nothing, since require_mcp_auth is on: send it as Authorization: Bearer.", http.StatusUnauthorized)
				return
			}
		}
		metrics.ServeHTTP(w, r)
	}
}

// seesAll reports whether a token is bound to nothing less than all servers and lanes.
func seesAll(token *auth.ActiveToken, profiles auth.Profiles) bool {
	if token == nil {
		return false
	}
	within := auth.CallerBounds(token, "", profiles).Scope()
	return within.AllServers() && within.AllLanes()
}
