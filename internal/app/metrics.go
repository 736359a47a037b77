package app

import (
	"net/http"

	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/ops/telemetry"
)

// telemetryState returns the current values of the gauges.
func (d *daemon) telemetryState() telemetry.ProxyState {
	health := d.log.Health()
	s := telemetry.ProxyState{
		Waiting: d.gate.QueueLength(), Sessions: d.mcp.SessionCount(), Servers: map[string]int{},
		Degraded: health.Degraded, Backlog: health.Backlog, SpoolBytes: health.Spool, Records: health.Records,
	}
	var tools ops.Counts
	for _, server := range d.catalog.Current().Servers() {
		if !server.Enabled {
			s.Servers["disabled"]++
			continue
		}
		s.Servers[ops.DisplayedServerState(server)]++
		for _, t := range server.Tools {
			tools.AddTool(t)
		}
	}
	s.Tools = tools.ByStatus()
	return s
}

// metricsHandler serves /metrics. Because they name servers, they require the same credentials as MCP, and a token with a limited scope may not read them.
func (d *daemon) metricsHandler(authenticator *auth.Authenticator, profiles auth.ProfileRuleFunc, metrics http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if d.live.Current().RequireMCPAuth {
			who, token, err := authenticator.IdentifyRequest(r)
			if err != nil || who.Kind != auth.Admin && !hasFullScope(token, profiles) {
				w.Header().Set("WWW-Authenticate", `Bearer realm="mcpproxy"`)
				http.Error(w, "With require_mcp_auth, the metrics require the API key or an agent token without limits: send it as Authorization: Bearer.", http.StatusUnauthorized)
				return
			}
		}
		metrics.ServeHTTP(w, r)
	}
}

// hasFullScope reports whether a token allows all servers and lanes.
func hasFullScope(token *auth.LoadedToken, profiles auth.ProfileRuleFunc) bool {
	if token == nil {
		return false
	}
	within := auth.NewCallerBounds(token, "", profiles).Scope()
	return within.AllowsAllServers() && within.AllowsAllLanes()
}
