package app

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/config"
	"mcpproxy/internal/config/auth/users"
	"mcpproxy/internal/store/redact"
	"mcpproxy/internal/upstream"
)

// terminalHandler is a slog.Handler that writes lines for a user at a terminal.
type terminalHandler struct {
	*terminalOutput
	attrs slog.Handler // formats the attributes of a record
}

// terminalOutput is shared by all handlers of one terminal.
type terminalOutput struct {
	mu    sync.Mutex
	to    io.Writer
	attrs bytes.Buffer
}

func newTerminalHandler(to io.Writer, level *slog.LevelVar) *terminalHandler {
	p := &terminalHandler{terminalOutput: &terminalOutput{to: to}}
	p.attrs = slog.NewTextHandler(&p.terminalOutput.attrs, &slog.HandlerOptions{Level: level, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey || a.Key == slog.MessageKey) {
			return slog.Attr{}
		}
		return redact.Attr(groups, a)
	}})
	return p
}

// printLine writes a line; a nil handler writes nothing.
func (p *terminalHandler) printLine(format string, args ...any) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.to, format+"\n", args...)
}

// printEvent is printLine with the time.
func (p *terminalHandler) printEvent(format string, args ...any) {
	p.printLine(time.Now().Format(time.TimeOnly)+"  "+format, args...)
}

// Enabled implements slog.Handler. Below warnings it requires log.level debug.
func (p *terminalHandler) Enabled(ctx context.Context, l slog.Level) bool {
	return p.attrs.Enabled(ctx, l) && (l >= slog.LevelWarn || p.attrs.Enabled(ctx, slog.LevelDebug))
}

// Handle implements slog.Handler.
func (p *terminalHandler) Handle(ctx context.Context, r slog.Record) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.terminalOutput.attrs.Reset()
	if err := p.attrs.Handle(ctx, r); err != nil {
		return err
	}
	word := ""
	switch {
	case r.Level >= slog.LevelError:
		word = "Error: "
	case r.Level >= slog.LevelWarn:
		word = "Warning: "
	}
	line := r.Time.Format(time.TimeOnly) + "  " + word + toPrintableLine(r.Message)
	if attrs := strings.TrimSpace(p.terminalOutput.attrs.String()); attrs != "" {
		line += " (" + attrs + ")"
	}
	_, err := fmt.Fprintln(p.to, line)
	return err
}

// WithAttrs implements slog.Handler.
func (p *terminalHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &terminalHandler{p.terminalOutput, p.attrs.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (p *terminalHandler) WithGroup(name string) slog.Handler {
	return &terminalHandler{p.terminalOutput, p.attrs.WithGroup(name)}
}

// toPrintableLine converts external text to one line without control characters.
func toPrintableLine(s string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) {
			return ' '
		}
		return r
	}, s))
}

// printWelcome tells the user the next steps.
func (d *daemon) printWelcome() {
	p := d.terminal
	if isMissing(d.live.Path()) {
		p.printLine("Welcome to MCPProxy. There are no servers yet. Add some with")
		p.printLine("  mcpproxy upstream add NAME -- COMMAND …     or     mcpproxy upstream add NAME --url URL")
		p.printLine("in another terminal. They are stored in %s.", d.live.Path())
		p.printLine("")
	}
	p.printLine("MCPProxy %s is running. Address for your MCP clients:", d.opt.Version)
	p.printLine("  http://%s/mcp", d.tcp.Addr())
	p.printLine("or the command `mcpproxy stdio`. Web UI: `mcpproxy ui`. To see the state, run `mcpproxy status`. Data: %s.", d.live.Current().DataDir)
	p.printLine("Press Ctrl-C to stop MCPProxy and its servers. Running calls may finish.")
	p.printLine("")
}

// logPendingReviews logs, once the approvals are loaded, whether approvals were lost, and which servers wait for review.
func (d *daemon) logPendingReviews(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-d.book.LoadedChan():
	}
	for _, warning := range d.gateway.MissingApprovalWarnings() {
		d.logger.Warn(warning)
	}
	for _, s := range d.live.Current().Servers {
		if s.Enabled && catalog.IsQuarantined(s, d.book.ServerView(s.Name)) {
			d.terminal.printEvent("%s waits for your review: mcpproxy upstream approve %s", s.Name, s.Name)
		}
	}
}

// printState tells the user about a server's new state.
func (r *serverEventRecorder) printState(s upstream.State) {
	switch s.Phase {
	case upstream.Ready:
		r.terminal.printEvent("%s is ready.", s.Name)
	case upstream.Failed:
		why, _, _ := strings.Cut(strings.TrimSpace(s.LastError), "\n")
		r.terminal.printEvent("%s cannot be used: %s (mcpproxy upstream logs %s)", s.Name, toPrintableLine(why), s.Name)
	}
}

// newLogger returns a logger that writes text, JSON lines or lines for a user. Values are masked, because callers and servers choose some of them.
func newLogger(to io.Writer, format string, level *slog.LevelVar, person *terminalHandler) *slog.Logger {
	if person != nil {
		return slog.New(person)
	}
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: redact.Attr}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(to, options))
	}
	return slog.New(slog.NewTextHandler(to, options))
}

// userSettingsUpdater follows the configured providers and users.
type userSettingsUpdater struct{ *users.Verifier }

// PrepareConfig implements config.ReloadableComponent.
func (u userSettingsUpdater) PrepareConfig(next *config.Config) (func(), error) {
	settings := next.UserSettings()
	return func() { u.Apply(settings) }, nil
}

// logLevelUpdater follows the configured level.
type logLevelUpdater struct{ *slog.LevelVar }

// PrepareConfig implements config.Component.
func (l logLevelUpdater) PrepareConfig(next *config.Config) (func(), error) {
	return func() { _ = l.UnmarshalText([]byte(next.LogLevel)) }, nil // config has validated the name
}
