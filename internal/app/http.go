package app

import (
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"mcpproxy/internal/api"
	"mcpproxy/internal/auth"
	"mcpproxy/internal/guard"
	"mcpproxy/internal/http1"
)

// The bounds of a connection.
const (
	headerTime  = 5 * time.Second
	idleTime    = 2 * time.Minute
	headerBytes = 32 << 10
	maxConns    = 4_000
)

// openServers makes the servers of the TCP listener and of the socket. Both
// answer the same; who comes over the socket is known by its connection. The
// listener answers what is plain by itself.
func (d *daemon) openServers(mcp, rest http.Handler) {
	guarded := http.NewServeMux()
	guarded.Handle(api.Prefix+"/", rest)
	guarded.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answerOK(w) })
	guarded.HandleFunc("GET /readyz", d.ready)
	guarded.HandleFunc("/", nothingHere)
	mux := http.NewServeMux()
	for _, path := range []string{"/mcp", "/mcp/all", "/mcp/servers/{server}", "/mcp/s/{server}"} {
		mux.Handle(path, mcp) // it refuses in the form of its protocol, by the same guard
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if why := guard.Refuse(r, d.live.Current().TrustedHosts); why != "" {
			http.Error(w, "Forbidden: "+why+".", http.StatusForbidden)
			return
		}
		guarded.ServeHTTP(w, r)
	})
	one := func() *http.Server {
		return &http.Server{
			Handler: mux, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: headerBytes,
			ErrorLog: slog.NewLogLogger(d.logger.Handler(), slog.LevelDebug), ConnContext: auth.ConnContext,
			BaseContext: d.base,
		}
	}
	d.servers = []*http.Server{one(), one()}
	d.plain = http1.New(d.tcp, http1.Options{
		Handler: mux, Plain: func(path string) bool { return path == "/mcp" || strings.HasPrefix(path, "/mcp/") },
		Base: d.base, HeaderTime: headerTime, IdleTime: idleTime, MaxConns: maxConns, Logger: d.logger,
	})
}

// nothingHere names the paths that answer to who has mistaken one.
func nothingHere(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "Nothing answers at this path. MCP is at /mcp, every tool by itself at /mcp/all, one server at /mcp/servers/NAME, "+
		"and REST under "+api.Prefix+".", http.StatusNotFound)
}

// ready answers 200 when calls can be recorded and answered.
func (d *daemon) ready(w http.ResponseWriter, _ *http.Request) {
	if h := d.log.Health(); h.Degraded {
		http.Error(w, "the activity log is degraded: "+h.Message, http.StatusServiceUnavailable)
		return
	}
	answerOK(w)
}

func answerOK(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, "ok\n") // the client is gone: nobody is left to tell
}

// newLogger writes to stderr as text or JSON lines.
func newLogger(to io.Writer, format string, level *slog.LevelVar) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(to, options))
	}
	return slog.New(slog.NewTextHandler(to, options))
}

// level is the named level; config has checked the name.
func level(name string) slog.Level {
	var l slog.Level
	if l.UnmarshalText([]byte(name)) != nil {
		return slog.LevelInfo
	}
	return l
}
