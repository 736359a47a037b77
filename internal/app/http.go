package app

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"mcpproxy/internal/api"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/config/auth/users"
	"mcpproxy/internal/mcp/httpserver"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/ops/telemetry"
	"mcpproxy/internal/web"
)

// Limits of a connection.
const (
	headerTimeout  = 5 * time.Second
	bodyTimeout    = api.BodyTime
	idleTimeout    = 2 * time.Minute
	headerBytes    = 32 << 10
	maxConns       = 4_000
	maxSocketConns = 1_000
)

// connectionLimits returns the limits of client connections: at most a half and an eighth of the process's open files. Servers,
// log and database need files too.
func connectionLimits(files uint64) (tcp, socket int) {
	if files == 0 {
		return maxConns, maxSocketConns
	}
	return int(max(1, min(maxConns, files/2))), int(max(1, min(maxSocketConns, files/8)))
}

// createHTTPServers creates the HTTP servers of the TCP listener and of the socket. Both have the same routes; a client of the socket is identified by its
// connection.
func (d *daemon) createHTTPServers(mcp, rest, ui, metrics http.Handler) {
	mux := http.NewServeMux()
	mux.Handle(api.Prefix, rest)
	mux.Handle(api.Prefix+"/", rest)
	for _, path := range []string{web.Path, strings.TrimSuffix(web.Path, "/"), "GET /{$}"} {
		mux.Handle(path, ui)
	}
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { writeOK(w) })
	mux.HandleFunc("GET /readyz", d.serveReady)
	mux.Handle("GET /metrics", metrics)
	paths := []string{"/mcp/servers/{server}", "/mcp/s/{server}", "/mcp/p/{profile}"}
	for _, all := range allPaths {
		paths = append(paths, "/mcp/"+all, "/mcp/p/{profile}/"+all)
	}
	mux.Handle("/mcp", mcp)
	for _, path := range paths {
		mux.Handle(path, mcp)
		mux.Handle(path+"/mcp", mcp)
	}
	mux.Handle("GET "+callbackPath, d.logins)
	mux.HandleFunc("GET "+users.MetadataPath+"/", func(w http.ResponseWriter, r *http.Request) {
		path := strings.TrimPrefix(r.URL.Path, users.MetadataPath)
		if !isMCPPath(path) && path != api.Prefix || !d.users.ServeMetadata(w, r) {
			serveNotFound(w, r)
		}
	})
	mux.HandleFunc("/", serveNotFound)
	trusted := func() []string { return d.live.Current().AllowedHosts() }
	open := func(l net.Listener, conns int, plain func(path string) bool, front func(*http.Request) string) {
		handler := &rootHandler{mcp: mcp, rest: mux, trusted: trusted, front: front}
		opt := httpserver.Options{
			Handler: handler, Plain: plain, Base: d.base,
			HeaderTime: headerTimeout, BodyTime: bodyTimeout, IdleTime: idleTimeout, MaxConns: conns, Logger: d.logger,
		}
		if l == d.tcp && d.certificate != nil {
			opt.TLS, opt.TLSFailed = d.certificate.tlsConfig(), d.certificate.handshakeFailed
		}
		listener := httpserver.New(l, opt)
		server := &http.Server{
			Handler: handler, MaxHeaderBytes: headerBytes, DisableGeneralOptionsHandler: true,
			ErrorLog: slog.NewLogLogger(d.logger.Handler(), slog.LevelDebug), ConnContext: auth.MarkSocketConn, BaseContext: d.base,
		}
		listener.ApplyLimits(server)
		d.listeners, d.servers = append(d.listeners, listener), append(d.servers, server)
	}
	tcp, socket := connectionLimits(openFileLimit())
	open(d.tcp, tcp, func(string) bool { return true }, func(r *http.Request) string {
		cfg := d.live.Current()
		return auth.Front{TLS: d.certificate != nil, Proxies: cfg.ProxyAddresses(), Path: cfg.PublicPath()}.Apply(r)
	})
	open(d.unix, socket, func(string) bool { return false }, func(*http.Request) string { return "" })
	d.loopback = &loopbackListeners{usesPasskeys: d.presence.NeedsPasskey, logger: d.logger, serve: func(l net.Listener) {
		listener := httpserver.New(l, d.listeners[0].Options)
		d.running.Go(func() {
			if err := d.servers[0].Serve(listener); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
				d.logger.Error("a listener of the web UI stopped", "address", l.Addr(), "error", err)
			}
		})
	}}
}

// serveNotFound lists the existing paths.
func serveNotFound(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "This path does not exist. MCP is at /mcp, all tools under their own names at /mcp/all, those of one lane at /mcp/all/read, /mcp/all/write and /mcp/all/destructive, one server at /mcp/servers/NAME, a profile at /mcp/p/NAME, "+
		"REST under "+api.Prefix+", and the web UI at "+web.Path+".", http.StatusNotFound)
}

func writeOK(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, "ok\n") // the client has disconnected; no one reads the error
}

// rootHandler checks Host and Origin of every request before routing, because the router also redirects and answers requests.
type rootHandler struct {
	mcp     http.Handler // has the same check, and rejects in the form of MCP
	rest    http.Handler
	trusted func() []string
	front   func(*http.Request) (refusal string) // see auth.Front
}

// ServeHTTP routes a request that passes the check.
func (e *rootHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if why := e.front(r); why != "" {
		refuseRequest(w, r, why)
		return
	}
	path := strings.HasPrefix(r.RequestURI, "/")
	if plain, ok := strings.CutSuffix(r.URL.Path, "/"); ok && path && r.URL.RawPath == "" && isMCPPath(plain) {
		r = r.Clone(r.Context()) // some clients append a slash
		r.URL.Path = plain
	}
	if path && r.URL.RawPath == "" && isMCPPath(r.URL.Path) {
		e.mcp.ServeHTTP(w, r)
		return
	}
	why := auth.HostOrOriginRefusal(r, e.trusted())
	if why == "" && !path {
		// A host in the target replaces the Host header, which then was not checked.
		why = "the target of the request is not a path"
	}
	if why != "" {
		refuseRequest(w, r, why)
		return
	}
	e.rest.ServeHTTP(w, r)
}

// refuseRequest answers a request that is not routed.
func refuseRequest(w http.ResponseWriter, r *http.Request, why string) {
	w.Header().Set("Connection", "close") // do not wait for the body
	if r.URL.Path == api.Prefix || strings.HasPrefix(r.URL.Path, api.Prefix+"/") {
		api.WriteForbidden(w, why)
		return
	}
	http.Error(w, "Forbidden: "+why+".", http.StatusForbidden)
}

// isMCPPath reports whether the path is an MCP endpoint in its canonical form.
func isMCPPath(path string) bool {
	rest, ok := strings.CutPrefix(path, "/mcp/")
	if !ok {
		return path == "/mcp"
	}
	kind, name, _ := strings.Cut(rest, "/")
	name = strings.TrimSuffix(name, "/mcp") // some clients append /mcp
	switch kind {
	case "all":
		return slices.Contains(allPaths, strings.TrimSuffix(rest, "/mcp"))
	case "p":
		var all string
		if name, all, ok = strings.Cut(name, "/"); ok && !slices.Contains(allPaths, all) {
			return false
		}
	case "servers", "s":
	default:
		return false
	}
	return name != "" && name != "." && name != ".." && !strings.Contains(name, "/")
}

// callbackPath is the path at which browsers end a login to a server, if there is a public URL.
const callbackPath = "/oauth/callback"

// allPaths are the ends of the paths of all servers, and of their lanes.
var allPaths = []string{"all", "all/read", "all/write", "all/destructive"}

// startupWait limits how long readiness waits for the tools of servers that were never listed.
const startupWait = 2 * time.Minute

// serveReady answers 200 when calls can be recorded and answered.
func (d *daemon) serveReady(w http.ResponseWriter, _ *http.Request) {
	if h := d.log.Health(); h.Degraded {
		http.Error(w, "the activity log is degraded: "+h.Message, http.StatusServiceUnavailable)
		return
	}
	if n := d.countServersWithoutTools(); n > 0 {
		http.Error(w, fmt.Sprintf("it has just started, and %d server(s) have not listed their tools yet", n), http.StatusServiceUnavailable)
		return
	}
	writeOK(w)
}

// countServersWithoutTools returns how many servers readiness still waits for. Servers that fail later do not matter.
func (d *daemon) countServersWithoutTools() (n int) {
	if d.toolsKnown.Load() {
		return 0
	}
	for _, s := range d.catalog.Current().Servers() {
		if s.AwaitsFirstList() {
			n++
		}
	}
	if n == 0 || time.Since(d.started) > startupWait {
		d.toolsKnown.Store(true)
		return 0
	}
	return n
}

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
		if cfg := d.live.Current(); cfg.RequireMCPAuth || len(cfg.Users) > 0 {
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
