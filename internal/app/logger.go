package app

import (
	"io"
	"log/slog"

	"mcpproxy/internal/config"
	"mcpproxy/internal/store/redact"
)

// newLogger writes to stderr as text or JSON lines, or for a person. Values hold names that
// callers and servers chose, and so are masked.
func newLogger(to io.Writer, format string, level *slog.LevelVar, person *people) *slog.Logger {
	if person != nil {
		return slog.New(person)
	}
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: redact.Attr}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(to, options))
	}
	return slog.New(slog.NewTextHandler(to, options))
}

// logLevel follows the level that is configured.
type logLevel struct{ *slog.LevelVar }

// Prepare implements config.Component.
func (l logLevel) Prepare(next *config.Config) (func(), error) {
	return func() { _ = l.UnmarshalText([]byte(next.LogLevel)) }, nil // config has checked the name
}
