package app

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
)

// A person reads lines: a word for how bad it is, and nothing that steers the
// terminal. What is no trouble is left out, unless it is asked for.
func TestLinesForPeople(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	level := new(slog.LevelVar)
	p := newPeople(&out, level)
	logger := newLogger(&out, "text", level, p).With("server", "notes")
	logger.Info("a try")
	logger.Warn("it is slow\x1b[2J", "error", errors.New("timed out\x1b[31m"))
	logger.Error("it is gone")
	p.event("%s is ready.", "notes")
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
	var nobody *people
	nobody.event("nothing is said")
}

// Who listens on a port is found where the system tells.
func TestWhoListens(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the system does not tell")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	pid, process, _ := holderOf(portOf(l.Addr().String()))
	if pid != os.Getpid() || process == "" {
		t.Errorf("process %d %q, this is %d", pid, process, os.Getpid())
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	if pid, process, dataDir := holderOf(portOf(address)); pid != 0 || process != "" || dataDir != "" {
		t.Errorf("nobody listens there but %d %q %q", pid, process, dataDir)
	}
}
