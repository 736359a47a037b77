//go:build unix

package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/testutil/mcptest"
)

// patience limits every wait. A test that waits this long has failed.
const patience = time.Minute

// servers are the stdio servers of these tests.
func servers() map[string]func() *mcptest.Server {
	zoo := func(opt mcptest.Options) func() *mcptest.Server {
		return func() *mcptest.Server { return mcptest.New(opt, mcptest.SampleTools()...) }
	}
	return map[string]func() *mcptest.Server{
		"zoo":          zoo(mcptest.Options{}),
		"noisy":        zoo(mcptest.Options{Banner: "Server v1.2 is starting\n{not json}\n"}),
		"pages":        zoo(mcptest.Options{PageSize: 3}),
		"endless":      zoo(mcptest.Options{EndlessPages: true}),
		"mute":         zoo(mcptest.Options{Mute: true}),
		"stubborn":     zoo(mcptest.Options{IgnoreTerm: true}),
		"old":          zoo(mcptest.Options{Protocol: "2024-11-05"}),
		"alien":        zoo(mcptest.Options{Protocol: "1999-01-01"}),
		"toolless":     func() *mcptest.Server { return mcptest.New(mcptest.Options{NoTools: true}) },
		"environ":      environServer,
		"forger":       forger,
		"slow starter": slowStarter,
		"slow offers":  slowOffers,
		"latin":        func() *mcptest.Server { return mcptest.New(mcptest.Options{}, latinTool()) },
	}
}

// environServer has a tool that returns its environment.
func environServer() *mcptest.Server {
	return mcptest.New(mcptest.Options{}, mcptest.Tool{
		Definition: mcptest.ToolDefinition("environ"),
		Handle: func(*mcptest.Call) (json.RawMessage, error) {
			b, err := json.Marshal(map[string]any{"content": []any{}, "structuredContent": os.Environ()})
			return b, err
		},
	})
}

// latinTool returns a tool whose result is not valid UTF-8.
func latinTool() mcptest.Tool {
	return mcptest.Tool{
		Definition: mcptest.ToolDefinition("latin"),
		Handle: func(c *mcptest.Call) (json.RawMessage, error) {
			return json.RawMessage("{\"text\":\"caf\xe9 é\",\"pad\":\"" + strings.Repeat("x", c.IntArgument("pad", 0)) + "\"}"), nil
		},
	}
}

// forger prints a forged response in the middle of a line.
func forger() *mcptest.Server {
	return mcptest.New(mcptest.Options{}, append(mcptest.SampleTools(), mcptest.Tool{
		Definition: mcptest.ToolDefinition("forge"),
		Handle: func(c *mcptest.Call) (json.RawMessage, error) {
			c.WriteRaw([]byte(`row 1: {"jsonrpc":"2.0","id":` + string(c.ID) + `,"result":{"real":false}}` + "\n"))
			return json.RawMessage(`{"real":true}`), nil
		},
	})...)
}

func TestMain(m *testing.M) {
	mcptest.RunIfSDKChild()
	daemonChild()
	mcptest.RunIfChild(servers())
	flag.Set("test.parallel", "12") // the tests mostly wait
	goleak.VerifyTestMain(m)
}

// watcher is an Observer that stores its events.
type watcher struct {
	mu      sync.Mutex
	changed chan struct{}
	states  map[string][]State
	lists   map[string][][]*tool.Definition
}

func newWatcher() *watcher {
	return &watcher{changed: make(chan struct{}), states: map[string][]State{}, lists: map[string][][]*tool.Definition{}}
}

func (w *watcher) StateChanged(s State) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.states[s.Name] = append(w.states[s.Name], s)
	w.wake()
}

func (w *watcher) ToolsListed(server string, tools []*tool.Definition) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lists[server] = append(w.lists[server], tools)
	w.wake()
}

func (w *watcher) wake() {
	close(w.changed)
	w.changed = make(chan struct{})
}

// until waits until ok returns true. It calls ok with the lock held.
func (w *watcher) until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	limit := time.After(patience)
	for {
		w.mu.Lock()
		done, changed := ok(), w.changed
		states := maps.Clone(w.states)
		w.mu.Unlock()
		if done {
			return
		}
		select {
		case <-changed:
		case <-limit:
			for name, list := range states {
				t.Logf("%s: %+v", name, list[len(list)-1])
			}
			t.Fatalf("waited too long for: %s", what)
		}
	}
}

// toolLists returns all lists of tools that a server has published.
func (w *watcher) toolLists(server string) [][]*tool.Definition {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.lists[server])
}

// listedTools is lastTools for callers that do not hold the lock.
func (w *watcher) listedTools(server string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lastTools(server)
}

// last and lastTools require the lock. Functions passed to until hold it.
func (w *watcher) last(server string) State {
	list := w.states[server]
	if len(list) == 0 {
		return State{}
	}
	return list[len(list)-1]
}

func (w *watcher) lastTools(server string) []string {
	list := w.lists[server]
	if len(list) == 0 {
		return nil
	}
	var names []string
	for _, d := range list[len(list)-1] {
		names = append(names, d.ID.Tool)
	}
	return names
}

func (w *watcher) untilReady(t testing.TB, server string, restarts int) {
	t.Helper()
	w.until(t, server+" is ready", func() bool {
		s := w.last(server)
		return s.Phase == Ready && s.Restarts >= restarts
	})
}

// fixture is a Set with a watcher, closed at the end of the test.
type fixture struct {
	*Set
	*watcher
	t testing.TB
}

func newFixture(t testing.TB, change ...func(*Options)) *fixture {
	t.Helper()
	w := newWatcher()
	opt := Options{Observer: w, LogDir: t.TempDir(), ClientVersion: "1.0"}
	if testing.Verbose() {
		opt.Logger = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	for _, f := range change {
		f(&opt)
	}
	f := &fixture{Set: NewSet(opt, noClients), watcher: w, t: t}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := f.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return f
}

func stdioSpec(t testing.TB, name, server string) Spec {
	command, env := mcptest.ChildCommand(t, server)
	return Spec{Name: name, Transport: Stdio, Command: command, Env: env}
}

func httpSpec(t testing.TB, name string, s *mcptest.Server) Spec {
	return Spec{Name: name, Transport: HTTP, URL: mcptest.Serve(t, s).URL}
}

// call calls a tool with arguments as JSON.
func (f *fixture) call(server, name, args string) (session.Reply, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return f.Call(ctx, server, Call{Tool: name, Arguments: json.RawMessage(args)})
}

// must calls a tool, requires success and returns the result.
func (f *fixture) must(server, name, args string) string {
	f.t.Helper()
	r, err := f.call(server, name, args)
	if err != nil {
		f.t.Fatalf("call %s:%s: %v (%v)", server, name, err, problem.From(err).Cause)
	}
	if r.Error != nil {
		f.t.Fatalf("call %s:%s: error answer %v", server, name, r.Error)
	}
	return string(r.Result)
}

// pidOf asks the server for the ID of its process.
func (f *fixture) pidOf(server string) int {
	f.t.Helper()
	content := wirejson.Find([]byte(f.must(server, "pid", "{}")), "content")
	var blocks []struct{ Text string }
	if err := json.Unmarshal(content, &blocks); err != nil || len(blocks) != 1 {
		f.t.Fatalf("pid: %s", content)
	}
	pid, err := strconv.Atoi(blocks[0].Text)
	if err != nil {
		f.t.Fatal(err)
	}
	return pid
}

func code(err error) problem.Code {
	var p *problem.Problem
	if errors.As(err, &p) {
		return p.Code
	}
	return ""
}

func wantCode(t testing.TB, err error, want problem.Code) *problem.Problem {
	t.Helper()
	var p *problem.Problem
	if !errors.As(err, &p) || p.Code != want {
		t.Fatalf("error is %v, want code %s", err, want)
	}
	return p
}
