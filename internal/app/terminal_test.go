package app

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

// On a terminal, each line has a word for the severity and no control characters. Lines without a problem appear only on
// request.
func TestTerminalLogLines(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	level := new(slog.LevelVar)
	p := newTerminalHandler(&out, level)
	logger := newLogger(&out, "text", level, p).With("server", "notes")
	logger.Info("a try")
	logger.Warn("it is slow\x1b[2J", "error", errors.New("timed out\x1b[31m"))
	logger.Error("it is gone")
	p.printEvent("%s is ready.", "notes")
	level.Set(slog.LevelDebug)
	logger.Info("a try")
	var got []string
	for line := range strings.Lines(out.String()) {
		got = append(got, strings.TrimSuffix(line, "\n")[len("15:04:05"):])
	}
	want := []string{
		`  Warning: it is slow [2J (server=notes error="timed out\x1b[31m")`,
		`  Error: it is gone (server=notes)`,
		`  notes is ready.`,
		`  a try (server=notes)`,
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %q, want %q", got, want)
	}
	var nobody *terminalHandler
	nobody.printEvent("nothing is said")
}
