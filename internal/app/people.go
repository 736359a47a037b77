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

// people writes for a person at a terminal, a line for each thing: what is said,
// and what is logged.
type people struct {
	*lines
	attrs slog.Handler // writes what a record has beside its message
}

// lines are what all handlers of one terminal share.
type lines struct {
	mu    sync.Mutex
	to    io.Writer
	attrs bytes.Buffer
}

func newPeople(to io.Writer, level *slog.LevelVar) *people {
	p := &people{lines: &lines{to: to}}
	p.attrs = slog.NewTextHandler(&p.lines.attrs, &slog.HandlerOptions{Level: level, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey || a.Key == slog.MessageKey) {
			return slog.Attr{}
		}
		return redact.Attr(groups, a)
	}})
	return p
}

// say writes a line; without a person nothing is said.
func (p *people) say(format string, args ...any) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.to, format+"\n", args...)
}

// event is say with the time.
func (p *people) event(format string, args ...any) {
	p.say(time.Now().Format(time.TimeOnly)+"  "+format, args...)
}

// Enabled implements slog.Handler. What is no trouble a person is told by say, or
// asks for with log.level debug.
func (p *people) Enabled(ctx context.Context, l slog.Level) bool {
	return p.attrs.Enabled(ctx, l) && (l >= slog.LevelWarn || p.attrs.Enabled(ctx, slog.LevelDebug))
}

// Handle implements slog.Handler.
func (p *people) Handle(ctx context.Context, r slog.Record) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lines.attrs.Reset()
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
	line := r.Time.Format(time.TimeOnly) + "  " + word + printable(r.Message)
	if attrs := strings.TrimSpace(p.lines.attrs.String()); attrs != "" {
		line += " (" + attrs + ")"
	}
	_, err := fmt.Fprintln(p.to, line)
	return err
}

// WithAttrs implements slog.Handler.
func (p *people) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &people{p.lines, p.attrs.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (p *people) WithGroup(name string) slog.Handler {
	return &people{p.lines, p.attrs.WithGroup(name)}
}

// printable is text from outside on one line, with nothing in it that a terminal
// would obey.
func printable(s string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) {
			return ' '
		}
		return r
	}, s))
}
