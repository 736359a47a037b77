package app

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"mcpproxy/internal/api"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/mcp/httpserver"
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
	mux.HandleFunc("/", serveNotFound)
	handler := &rootHandler{mcp: mcp, rest: mux, trusted: func() []string { return d.live.Current().TrustedHosts }}
	open := func(l net.Listener, conns int, plain func(path string) bool) {
		listener := httpserver.New(l, httpserver.Options{
			Handler: handler, Plain: plain, Base: d.base,
			HeaderTime: headerTimeout, BodyTime: bodyTimeout, IdleTime: idleTimeout, MaxConns: conns, Logger: d.logger,
		})
		server := &http.Server{
			Handler: handler, MaxHeaderBytes: headerBytes, DisableGeneralOptionsHandler: true,
			ErrorLog: slog.NewLogLogger(d.logger.Handler(), slog.LevelDebug), ConnContext: auth.MarkSocketConn, BaseContext: d.base,
		}
		listener.ApplyLimits(server)
		d.listeners, d.servers = append(d.listeners, listener), append(d.servers, server)
	}
	tcp, socket := connectionLimits(openFileLimit())
	open(d.tcp, tcp, func(string) bool { return true })
	open(d.unix, socket, func(string) bool { return false })
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
