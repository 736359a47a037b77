package ops

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpproxy/internal/config"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/testutil/catalogtest"
	"mcpproxy/internal/upstream/process"
)

const token = "gh" + "p_0123456789abcdefghijABCDEFGHIJ012345"

func TestServerLogs(t *testing.T) {
	t.Parallel()
	w := newInspectorWorld(t, nil, defined("show", "Show.", reads))
	log := process.NewLog(w.dir, "s", process.Masker{})
	t.Cleanup(log.Close)
	fmt.Fprintln(log, "listening with", token)
	log.WriteStdoutLine([]byte("{no message"))
	tail, err := w.inspect.ServerLogs(t.Context(), catalogtest.AdminCaller, LogQuery{ServerRef: ServerRef{Name: "s"}, Lines: 2})
	if err != nil || len(tail.Lines) != 2 || len(tail.Entries) != 2 || tail.Lines[1] != "[stdout] {no message" {
		t.Fatalf("%+v, %v", tail, err)
	}
	first, second := tail.Entries[0], tail.Entries[1]
	if first.Stream != "stderr" || !strings.HasPrefix(first.Text, "listening with [masked") || tail.Lines[0] != first.Text || first.At == nil || time.Since(*first.At) > time.Minute {
		t.Errorf("%+v, %q", first, tail.Lines)
	}
	if second.Stream != "stdout" || second.Text != "{no message" || second.At == nil {
		t.Errorf("%+v", second)
	}
	if _, err := w.inspect.ServerLogs(t.Context(), catalogtest.AdminCaller, LogQuery{ServerRef: ServerRef{Name: "none"}, Lines: 2}); problem.From(err).Code != problem.ServerNotFound {
		t.Errorf("%v", err)
	}
}

// follows is a log stream that a client reads.
type follows struct {
	t     *testing.T
	lines *bufio.Scanner
	ended chan error
}

func (w *inspectorWorld) follow(t *testing.T, ctx context.Context) *follows {
	t.Helper()
	stream, err := w.inspect.FollowLogs(ctx, catalogtest.AdminCaller, LogQuery{ServerRef: ServerRef{Name: "s"}, Lines: 2})
	if err != nil {
		t.Fatal(err)
	}
	r, out := io.Pipe()
	f := &follows{t, bufio.NewScanner(r), make(chan error, 1)}
	f.lines.Buffer(nil, 1<<20)
	go func() {
		err := stream(ctx, out)
		out.Close()
		f.ended <- err
	}()
	t.Cleanup(func() { r.Close() })
	return f
}

// next returns the text of the next line, or "" for a ping.
func (f *follows) next() string {
	f.t.Helper()
	if !f.lines.Scan() {
		f.t.Fatal("the stream ended")
	}
	event := f.lines.Text()
	if !f.lines.Scan() || f.lines.Text() != "" {
		f.t.Fatalf("%q is followed by %q", event, f.lines.Text())
	}
	if event == ": ping" {
		return ""
	}
	data, ok := strings.CutPrefix(event, "data: ")
	var l LogLine
	if err := json.Unmarshal([]byte(data), &l); err != nil || !ok || l.At == nil || l.Stream == "" {
		f.t.Fatalf("%q: %v", event, err)
	}
	return l.Text
}

func TestLogsAreFollowed(t *testing.T) {
	t.Parallel()
	w := newInspectorWorld(t, nil, defined("show", "Show.", reads))
	before := w.follow(t, t.Context()) // starts before the log exists
	if got := before.next(); got != "" {
		t.Errorf("got %q before the log exists", got)
	}
	log := process.NewLog(w.dir, "s", process.Masker{})
	t.Cleanup(log.Close)
	for _, text := range []string{"one", "two", "three"} {
		fmt.Fprintln(log, text)
	}
	after := w.follow(t, t.Context())
	for f, want := range map[*follows][]string{before: {"one", "two", "three"}, after: {"two", "three"}} {
		for _, text := range want {
			if got := f.next(); got != text {
				t.Errorf("%q, want %q", got, text)
			}
		}
	}
	fmt.Fprint(log, "it is ")
	fmt.Fprintln(log, token)
	for _, f := range []*follows{before, after} {
		if got := f.next(); !strings.HasPrefix(got, "it is [masked") {
			t.Errorf("%q", got)
		}
	}
	// The stream also contains the last lines before the removal of the server.
	log.WriteRemark("goodbye")
	w.Reload(func(c *config.Config) { c.Servers = nil })
	for _, f := range []*follows{before, after} {
		if got := f.next(); got != "goodbye" || f.lines.Scan() {
			t.Errorf("%q, then %q", got, f.lines.Text())
		}
		if err := <-f.ended; err != nil {
			t.Error(err)
		}
	}
	if _, err := w.inspect.FollowLogs(t.Context(), catalogtest.AdminCaller, LogQuery{ServerRef: ServerRef{Name: "s"}}); problem.From(err).Code != problem.ServerNotFound {
		t.Errorf("%v", err)
	}
}

// A stream without new lines sends a ping every 15 seconds.
func TestStreamKeepAlive(t *testing.T) {
	t.Parallel()
	outside := newInspectorWorld(t, nil, defined("show", "Show.", reads))
	synctest.Test(t, func(t *testing.T) {
		w := *outside
		w.inspect = NewInspector(w.gateway, w.log, &w)
		f := w.follow(t, t.Context())
		for i := range 4 {
			began := time.Now()
			if got := f.next(); got != "" {
				t.Fatalf("%q", got)
			}
			if took := time.Since(began); i > 0 && took != pingInterval {
				t.Errorf("got %v between two pings", took)
			}
		}
		w.inspect.Close()
		if err := <-f.ended; err != nil {
			t.Error(err)
		}
	})
}

func TestFollowingEnds(t *testing.T) {
	t.Parallel()
	w := newInspectorWorld(t, nil, defined("show", "Show.", reads))
	ctx, cancel := context.WithCancel(t.Context())
	leaves, stays := w.follow(t, ctx), w.follow(t, t.Context())
	leaves.next()
	stays.next()
	cancel()
	if err := <-leaves.ended; err != nil {
		t.Error(err)
	}
	w.inspect.Close()
	w.inspect.Close()
	if err := <-stays.ended; err != nil {
		t.Error(err)
	}
	for range maxFollows {
		w.inspect.follows <- struct{}{}
	}
	if err := <-w.follow(t, t.Context()).ended; problem.From(err).Code != problem.Overloaded {
		t.Errorf("%v", err)
	}
	// A client that stops reading causes an error.
	stream, err := NewInspector(w.gateway, w.log, w).FollowLogs(t.Context(), catalogtest.AdminCaller, LogQuery{ServerRef: ServerRef{Name: "s"}})
	if err != nil {
		t.Fatal(err)
	}
	r, out := io.Pipe()
	r.Close()
	if err := stream(t.Context(), out); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("%v", err)
	}
}
