package app

import (
	"io"
	"log/slog"

	"mcpproxy/internal/config"
	"mcpproxy/internal/store/redact"
)

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

// logLevelUpdater follows the configured level.
type logLevelUpdater struct{ *slog.LevelVar }

// PrepareConfig implements config.Component.
func (l logLevelUpdater) PrepareConfig(next *config.Config) (func(), error) {
	return func() { _ = l.UnmarshalText([]byte(next.LogLevel)) }, nil // config has validated the name
}
