//go:build unix

package compat

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"log/slog"
	"maps"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/testutil/mcptest"
)

// patience limits every wait. A test that waits this long has failed.
const patience = time.Minute

// The stdio servers of these tests.
func servers() map[string]func() *mcptest.Server {
	zoo := func(opt mcptest.Options) func() *mcptest.Server {
		return func() *mcptest.Server { return mcptest.New(opt, mcptest.SampleTools()...) }
	}
	return map[string]func() *mcptest.Server{
		"zoo":      zoo(mcptest.Options{}),
		"asker":    asker,
		"turncoat": func() *mcptest.Server { return turncoat(mcptest.Options{}) },
		"club":     club,
		"quiz":     quiz,
		"picky":    picky,
		"chatter":  func() *mcptest.Server { return mcptest.New(mcptest.Options{}, chatterTool()) },
	}
}

func TestMain(m *testing.M) {
	mcptest.RunIfSDKChild()
	mcptest.RunIfChild(servers())
	flag.Set("test.parallel", "12") // the tests mostly wait
	goleak.VerifyTestMain(m)
}

// sdkSpecs are servers of the official SDK over each transport.
func sdkSpecs(t *testing.T) map[string]Spec {
	command, _ := mcptest.ChildCommand(t, "")
	specs := map[string]Spec{"stdio": {Transport: Stdio, Command: command, Env: map[string]string{mcptest.SDKVar: "1"}}}
	for name, url := range mcptest.ServeSDKHTTP(t) {
		specs[name] = Spec{Transport: HTTP, URL: url}
	}
	return specs
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

// until waits until ok, which is called with the lock held, is true.
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

func (w *watcher) last(server string) State {
	list := w.states[server]
	if len(list) == 0 {
		return State{}
	}
	return list[len(list)-1]
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
	*ServerSet
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
	f := &fixture{ServerSet: NewServerSet(opt), watcher: w, t: t}
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

// modernParams returns params with the metadata of a modern request.
func modernParams(params string) json.RawMessage {
	meta := cloneObjectOrEmpty(wirejson.Find([]byte(params), "_meta"))
	meta = wirejson.SetMember(meta, mcp.MetaVersion, json.RawMessage(`"`+mcp.Modern+`"`))
	meta = wirejson.SetMember(meta, mcp.MetaCapabilities, json.RawMessage("{}"))
	meta = wirejson.SetMember(meta, mcp.MetaClientInfo, json.RawMessage(`{"name":"mcpproxy","version":"c"}`))
	return wirejson.SetMember([]byte(params), "_meta", meta)
}

// call calls a tool with arguments as JSON.
func (f *fixture) call(server, name, args string) (session.Reply, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return f.Call(ctx, server, Call{Tool: name, Arguments: json.RawMessage(args)})
}

// must makes a call that must succeed, and returns the result.
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

// pidOf asks the server for the number of its process.
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

// clients returns the clients of a server.
func (f *fixture) clients(server string) *serverClients {
	sv, err := f.ServerForRequest(f.t.Context(), server)
	if err != nil {
		f.t.Fatal(err)
	}
	return sv.Clients.(*serverClients)
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

// named returns a caller with an authenticated name.
func named(name string) *auth.Caller {
	return &auth.Caller{Actor: auth.Actor{Kind: auth.Agent, Name: name}}
}
