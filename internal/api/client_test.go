package api

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpproxy/internal/gate"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

// both runs test with a client over the socket, then with a client over TCP with a key.
func both(t *testing.T, f *fake, test func(t *testing.T, c *Client)) {
	t.Helper()
	for name, e := range map[string]Endpoint{
		"socket": serveSocket(t, f),
		"key":    {URL: serve(t, f).URL, Key: testKey, Version: "9.9", Source: activity.SourceCLI},
	} {
		t.Run(name, func(t *testing.T) {
			c := NewClient(e)
			defer c.Close()
			test(t, c)
		})
	}
}

func TestClientRoundTrips(t *testing.T) {
	f := &fake{answer: gate.CallResult{Result: json.RawMessage(`{"content":[]}`), ActivityID: "01A"}}
	both(t, f, func(t *testing.T, c *Client) {
		ctx := t.Context()
		status, err := GetStatus.Call(ctx, c, ops.Nothing{})
		running, _ := f.Status(ctx, ops.Caller{}, ops.Nothing{})
		same(t, "status", status, running, err)
		servers, err := ListServers.Call(ctx, c, ops.Nothing{})
		known, _ := f.Servers(ctx, ops.Caller{}, ops.Nothing{})
		same(t, "servers", servers, known, err)
		server, err := GetServer.Call(ctx, c, ops.ServerRef{Name: "github"})
		detail, _ := f.Server(ctx, ops.Caller{}, ops.ServerRef{Name: "github"})
		same(t, "server", server, detail, err)
		restarted, err := RestartServer.Call(ctx, c, ops.ServerRef{Name: "github"})
		same(t, "restart", restarted, testServers()[0], err)
		logs, err := GetServerLogs.Call(ctx, c, ops.LogQuery{ServerRef: ops.ServerRef{Name: "github"}, Lines: 7})
		tail, _ := f.ServerLogs(ctx, ops.Caller{}, ops.LogQuery{ServerRef: ops.ServerRef{Name: "github"}})
		same(t, "logs", logs, tail, err)
		tools, err := ListTools.Call(ctx, c, ops.ToolQuery{ToolFilter: ops.ToolFilter{Server: "github", CallWith: "call_tool_read", Status: "callable"}})
		same(t, "tools", tools, testList(), err)
		one, err := GetTool.Call(ctx, c, ops.ToolRef{Server: "github", Tool: "../a b"})
		same(t, "tool", one, ops.ToolDetail{ToolView: testTool("../a b"), Lane: "read"}, err)
		found, err := SearchTools.Call(ctx, c, ops.SearchQuery{Query: "a & b", Limit: 3, Operation: "write", Explain: true})
		same(t, "search", found, ops.SearchAnswer{Query: "a & b", Tools: []ops.FoundTool{}, Locked: []ops.FoundTool{}}, err)
		if got, want := f.searches[len(f.searches)-1], (ops.SearchQuery{Query: "a & b", Limit: 3, Operation: "write", Explain: true}); got != want {
			t.Errorf("the gateway received %+v, want %+v", got, want)
		}
		since := time.Date(2026, 1, 15, 10, 30, 0, 5000, time.UTC)
		stats, err := GetToolStats.Call(ctx, c, ops.StatsQuery{Since: since})
		same(t, "stats", stats, ops.ToolStats{Since: since, Calls: 3, Tools: []ops.ToolUse{}, Dead: []string{"github:list_repos"}}, err)
		record, err := GetActivity.Call(ctx, c, ops.RecordRef{ID: "01JG2K4"})
		same(t, "record", record, testRecord(), err)
		answer, err := CallTool.Call(ctx, c, CallInput{Variant: "call_tool_read", Name: "github:x", Args: json.RawMessage(`{"a":"<&>"}`),
			Intent: CallIntent{OperationType: "read", Reason: "why"}, Timeout: "1s"})
		same(t, "call", answer, CallAnswer{json.RawMessage(`{"content":[]}`), false, []string{}, "01A", ""}, err)
		call := f.lastCall(t)
		if string(call.Args) != `{"a":"<&>"}` || call.Declared.Reason != "why" || call.Timeout != time.Second ||
			call.Caller.Source != activity.SourceCLI || call.Caller.ClientName != "mcpproxy" || call.Caller.ClientVersion != "9.9" {
			t.Errorf("call = %+v", call)
		}
	})
}

func same(t *testing.T, what string, got, want any, err error) {
	t.Helper()
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: %s", what, diff)
	}
}

func TestClientFilters(t *testing.T) {
	f := &fake{}
	c := NewClient(serveSocket(t, f))
	want := activity.Filter{
		Types: []activity.Type{"tool_call", "system"}, Statuses: []activity.Status{"error"}, Servers: []string{"github", "notes"},
		Tools: []string{"a,b", "c"}, SessionID: "s", RequestID: "r", IntentTypes: []string{"read", "write"}, Sensitivities: []string{"private"},
		Actors: []string{"agent"}, Clients: []string{"a,b"}, Since: time.Unix(1, 5).UTC(), Until: time.Unix(2, 0).UTC(), Search: "x&y", Limit: 7, Cursor: "c/+",
	}
	page, err := ListActivity.Call(t.Context(), c, want)
	if err != nil || page.Total != 7 || page.Limit != 7 || page.NextCursor != "next" || len(page.Activities) != 1 {
		t.Errorf("page %+v, %v", page, err)
	}
	if diff := cmp.Diff(want, f.filters[0]); diff != "" {
		t.Error(diff)
	}
}

func TestClientGetsProblems(t *testing.T) {
	both(t, &fake{}, func(t *testing.T, c *Client) {
		_, err := GetServer.Call(t.Context(), c, ops.ServerRef{Name: "gitub"})
		var p *problem.Problem
		if !errors.As(err, &p) || p.Code != problem.ServerNotFound || p.Message != "There is no server 'gitub'." || p.Hint != "Did you mean github?" {
			t.Fatalf("err = %#v", err)
		}
		raw, err := json.Marshal(p)
		if err != nil || !strings.Contains(string(raw), `"details":{"nearest":["github"]}`) {
			t.Errorf("%s, %v", raw, err)
		}
	})
}

// The client decodes the complete problem of each item of a batch, like the problem of a single request.
func TestClientGetsProblemOfEachItem(t *testing.T) {
	raw, err := json.Marshal(NewApprovedTools([]ops.BatchDecision{{Name: "s:a"}, {Name: "s:b", Problem: conflict()}}))
	if err != nil {
		t.Fatal(err)
	}
	var got ApprovedTools
	if err := json.Unmarshal(raw, &got); err != nil || len(got.Results) != 2 || got.Results[0].RefusalError() != nil {
		t.Fatalf("%+v, %v", got, err)
	}
	p := problem.From(got.Results[1].RefusalError())
	want, _ := json.Marshal(conflict())
	if is, err := json.Marshal(p); err != nil || string(is) != string(want) || len(p.Details) == 0 {
		t.Errorf("%s, %v, want %s", is, err, want)
	}
}

func codeOf(err error) problem.Code { return problem.From(err).Code }

func TestClientWithoutDaemon(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	stale := filepath.Join(t.TempDir(), "stale.sock")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: stale})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	for name, e := range map[string]Endpoint{
		"no socket": {Socket: SocketPath(dir)}, "stale socket": {Socket: stale}, "closed port": {URL: "http://" + closedPort(t)},
	} {
		_, err := GetStatus.Call(t.Context(), NewClient(e), ops.Nothing{})
		p := problem.From(err)
		if p.Code != problem.DaemonNotRunning || !strings.Contains(p.Hint, "mcpproxy serve") {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

// closedPort returns an address without a listener. No other program can listen on it, because it is the local end of
// an open connection.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c.LocalAddr().String()
}

// The client stops waiting for a daemon that accepts connections but sends nothing. A tool call may take as long as the
// daemon allows.
func TestClientTimesOutOnSilentDaemon(t *testing.T) {
	for name, test := range map[string]struct {
		ask  func(context.Context, *Client) error
		wait time.Duration
	}{
		"status": {func(ctx context.Context, c *Client) error {
			_, err := GetStatus.Call(ctx, c, ops.Nothing{})
			return err
		}, responseTimeout},
		"restart": {func(ctx context.Context, c *Client) error {
			_, err := RestartServer.Call(ctx, c, ops.ServerRef{Name: "a"})
			return err
		}, restartTimeout},
		"call": {func(ctx context.Context, c *Client) error {
			ctx, cancel := context.WithTimeout(ctx, time.Hour)
			defer cancel()
			_, err := CallTool.Call(ctx, c, CallInput{Variant: "call_tool_read", Name: "a:b"})
			return err
		}, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := NewClient(Endpoint{URL: "http://127.0.0.1:1"})
				defer c.Close()
				c.http.Transport.(*http.Transport).DialContext = func(context.Context, string, string) (net.Conn, error) {
					near, far := net.Pipe()
					go func() { _, _ = io.Copy(io.Discard, far) }()
					return near, nil
				}
				start := time.Now()
				err := test.ask(t.Context(), c)
				if took := time.Since(start); took != test.wait {
					t.Errorf("the client gave up after %s, want %s", took, test.wait)
				}
				want := problem.DaemonNotRunning
				if name == "call" {
					want = problem.Timeout
				}
				if p := problem.From(err); p.Code != want || p.Hint == "" || want == problem.DaemonNotRunning && !strings.Contains(p.Hint, "log") {
					t.Errorf("%+v", p)
				}
			})
		})
	}
}

func TestClientAgainstSomethingElse(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/servers") {
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
			return
		}
		http.Error(w, "hello", http.StatusTeapot)
	}))
	t.Cleanup(s.Close)
	c := NewClient(Endpoint{URL: s.URL, Key: testKey})
	if _, err := GetStatus.Call(t.Context(), c, ops.Nothing{}); codeOf(err) != problem.Internal || !strings.Contains(err.Error(), "418") {
		t.Errorf("err = %v", err)
	}
	if _, err := ListServers.Call(t.Context(), c, ops.Nothing{}); codeOf(err) != problem.Internal {
		t.Errorf("a redirect: %v", err)
	}
}

func TestClientThatLeavesCancelsTheCall(t *testing.T) {
	t.Parallel()
	f := &fake{block: make(chan struct{}), entered: make(chan struct{}), left: make(chan struct{})}
	c := NewClient(serveSocket(t, f))
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-f.entered; cancel() }()
	_, err := CallTool.Call(ctx, c, CallInput{Variant: "call_tool_read", Name: "github:x"})
	if codeOf(err) != problem.Interrupted {
		t.Errorf("err = %v", err)
	}
	select {
	case <-f.left:
	case <-time.After(time.Minute):
		t.Error("the canceled call did not end in the gateway")
	}
	ctx, cancel = context.WithTimeout(t.Context(), 0)
	defer cancel()
	if _, err := GetStatus.Call(ctx, c, ops.Nothing{}); codeOf(err) != problem.Timeout {
		t.Errorf("err = %v", err)
	}
}

func TestSocketPath(t *testing.T) {
	t.Parallel()
	if got := SocketPath("/data"); got != filepath.FromSlash("/data/mcpproxy.sock") && runtime.GOOS != "windows" {
		t.Errorf("path = %s", got)
	}
	long := "/" + strings.Repeat("long/", 40)
	got := SocketPath(long)
	if len(got) > maxSocketPath || got != SocketPath(long+"/.") || got == SocketPath(long+"x") {
		t.Errorf("path = %s", got)
	}
}

func TestLongDataDirectory(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), strings.Repeat("d", 60), strings.Repeat("e", 60))
	l, err := ListenSocket(dir)
	if err != nil {
		t.Fatal(err)
	}
	path := SocketPath(dir)
	info, err := os.Stat(filepath.Dir(path))
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory is %v, %v", info, err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket still exists: %v", err)
	}
}

func TestListenSocket(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	first, err := ListenSocket(dir)
	if err != nil {
		t.Fatal(err)
	}
	path := SocketPath(dir)
	if first.Addr().String() != path {
		t.Errorf("Addr returned %s", first.Addr())
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket is %v, %v", info, err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("the directory contains %v, %v", entries, err)
	}
	if _, err := ListenSocket(dir); err == nil || !strings.Contains(err.Error(), "Another MCPProxy") {
		t.Errorf("a second daemon: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}

	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		t.Fatal(err)
	}
	stale.SetUnlinkOnClose(false)
	stale.Close()
	again, err := ListenSocket(dir)
	if err != nil {
		t.Fatalf("a stale socket: %v", err)
	}
	again.Close()

	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ListenSocket(dir); err == nil {
		t.Error("a file was replaced")
	}
}

func TestSocketInADirectoryOfOthers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := checkPrivateDir(dir); err == nil {
		t.Error("a directory that others can write to was accepted")
	}
	if err := checkPrivateDir(filepath.Join(dir, "none")); err == nil {
		t.Error("a missing directory was accepted")
	}
}
