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

	"mcpproxy/internal/store/redact"
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
