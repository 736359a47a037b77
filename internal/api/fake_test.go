package api

import (
	"context"
	"encoding/json"
	"flag"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/ops/notify"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

var update = flag.Bool("update", false, "write goldens and generated documents")

// homes are the types that implement the operations. They are nil pointers, because no test calls their methods.
var homes = []any{(*ops.AccessOperations)(nil), (*ops.CallApprovals)(nil), (*ops.Admin)(nil), (*ops.SampleServers)(nil), (*ops.EventHub)(nil), (*notify.Notifier)(nil), (*ops.ActivityHistory)(nil), (*ops.Inspector)(nil), (*ops.ConfigOperations)(nil), (*ops.ClientOperations)(nil), (*ops.ImportOperations)(nil), (*ops.TrialOperations)(nil), (*ops.Explainer)(nil), (*ops.VersionOperations)(nil)}

var nobody = Deps{Implementations: homes}

const testKey = "key-for-tests-0123456789"

// fake is a gateway with two servers that records the requests it receives.
type fake struct {
	mu       sync.Mutex
	calls    []gate.LaneCall
	refused  []gate.SurfaceRefusal
	callers  []ops.Caller
	filters  []activity.Filter
	tools    []ops.ToolQuery
	searches []ops.SearchQuery
	lines    []int

	decisions []string
	added     []ops.AddServerRequest

	answer  gate.CallResult
	failure error
	block   chan struct{} // if set, a call waits until it is closed or the caller disconnects
	entered chan struct{} // closed when such a call arrives
	left    chan struct{} // closed when the caller of such a call disconnects
}

func (f *fake) Events(context.Context, ops.Caller, ops.EventQuery) (ops.StreamFunc, error) {
	return func(_ context.Context, w io.Writer) error {
		_, err := io.WriteString(w, ": ping\n\n")
		return err
	}, nil
}

func (f *fake) callTool(ctx context.Context, c ops.Caller, in CallInput) (CallAnswer, error) {
	r, err := f.Call(ctx, in.ToGateRequest(c))
	return CallAnswer{Result: r.Result, IsError: r.IsError, Warnings: r.Warnings, ActivityID: r.ActivityID, Handle: r.Handle}, err
}

func (f *fake) Call(ctx context.Context, r gate.LaneCall) (gate.CallResult, error) {
	f.mu.Lock()
	f.calls = append(f.calls, r)
	f.mu.Unlock()
	if f.block != nil {
		close(f.entered)
		select {
		case <-f.block:
		case <-ctx.Done():
			close(f.left)
			return gate.CallResult{}, ctx.Err()
		}
	}
	return f.answer, f.failure
}

func (f *fake) lastCall(t *testing.T) gate.LaneCall {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.calls) == 0 {
		t.Fatal("the gateway was not called")
	}
	return f.calls[len(f.calls)-1]
}

func testServers() []ops.ServerView {
	since := time.Date(2026, 1, 15, 10, 0, 0, 0, time.UTC)
	return []ops.ServerView{
		{Name: "github", Protocol: "http", Enabled: true, State: "ready", ToolCount: 3, URL: "https://example.com/mcp", Since: &since,
			Tools: &ops.Counts{policy.Callable: 2, policy.DisabledByConfig: 1}},
		{Name: "notes", Protocol: "stdio", Enabled: true, State: "failed", LastError: "exit status 1", Command: "notes"},
	}
}

func (f *fake) RecordRefusal(_ context.Context, r gate.SurfaceRefusal) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refused = append(f.refused, r)
	return "refusal"
}

func (f *fake) Servers(context.Context, ops.Caller, ops.Nothing) (ops.ServerList, error) {
	var all ops.ServerList
	for _, s := range testServers() {
		all.Servers = append(all.Servers, ops.ServerRow{ServerView: s, Waiting: 2})
	}
	return all, nil
}

func (f *fake) Server(_ context.Context, _ ops.Caller, in ops.ServerRef) (ops.ServerDetail, error) {
	s, err := f.server(in.Name)
	return ops.ServerDetail{ServerRow: ops.ServerRow{ServerView: s}, CallTimeout: "5m0s"}, err
}

func (f *fake) server(name string) (ops.ServerView, error) {
	for _, s := range testServers() {
		if s.Name == name {
			return s, nil
		}
	}
	return ops.ServerView{}, problem.Newf(problem.ServerNotFound, "There is no server '%s'.", name).
		WithHint("Did you mean github?").With("nearest", []string{"github"})
}

func (f *fake) RestartServer(ctx context.Context, c ops.Caller, in ops.ServerRef) (ops.ServerView, error) {
	f.mu.Lock()
	f.callers = append(f.callers, c)
	f.mu.Unlock()
	return f.server(in.Name)
}

func (f *fake) LoginServer(ctx context.Context, c ops.Caller, in ops.LoginRequest) (ops.LoginView, error) {
	f.mu.Lock()
	f.callers = append(f.callers, c)
	f.mu.Unlock()
	if _, err := f.Server(ctx, c, in.ServerRef); err != nil {
		return ops.LoginView{}, err
	}
	return ops.LoginView{Server: in.Name, State: "waiting", URL: "https://as.example/authorize?state=x"}, nil
}

func (f *fake) LoginProgress(ctx context.Context, c ops.Caller, in ops.ServerRef) (ops.LoginView, error) {
	if _, err := f.Server(ctx, c, in); err != nil {
		return ops.LoginView{}, err
	}
	if in.Name == "notes" {
		return ops.LoginView{Server: in.Name, State: "failed", Error: "the authorization server answers \"access_denied\""}, nil
	}
	return ops.LoginView{Server: in.Name, State: "done"}, nil
}

func (f *fake) CompleteLogin(ctx context.Context, c ops.Caller, in ops.LoginCompletion) (ops.LoginView, error) {
	return f.LoginProgress(ctx, c, in.ServerRef)
}

func (f *fake) LogoutServer(ctx context.Context, c ops.Caller, in ops.ServerRef) (ops.ServerView, error) {
	f.mu.Lock()
	f.callers = append(f.callers, c)
	f.mu.Unlock()
	return f.server(in.Name)
}

func (f *fake) ServerLogs(_ context.Context, _ ops.Caller, in ops.LogQuery) (ops.LogTail, error) {
	f.lines = append(f.lines, in.Lines)
	if _, err := f.server(in.Name); err != nil {
		return ops.LogTail{}, err
	}
	return ops.LogTail{Server: in.Name, Lines: []string{"started", "ready"}, Entries: []ops.LogLine{{Stream: "stderr", Text: "started"}, {Stream: "stderr", Text: "ready"}}}, nil
}

func (f *fake) FollowLogs(_ context.Context, _ ops.Caller, in ops.LogQuery) (ops.StreamFunc, error) {
	if _, err := f.server(in.Name); err != nil {
		return nil, err
	}
	return func(_ context.Context, w io.Writer) error {
		_, err := io.WriteString(w, "data: {}\n\n")
		return err
	}, nil
}

func (f *fake) Tools(_ context.Context, _ ops.Caller, filter ops.ToolQuery) (ops.ToolList, error) {
	f.tools = append(f.tools, filter)
	if filter.Server == "empty" {
		return ops.ToolList{}, nil
	}
	return testList(), nil
}

func testList() ops.ToolList {
	v := testTool("delete_repo")
	return ops.ToolList{Tools: []ops.ToolRow{{Name: v.Name, Server: v.Server, Tool: v.Tool, CallWith: v.CallWith, Lane: "destructive",
		FullToolFields: &ops.FullToolFields{Description: &v.Description, InputSchema: v.InputSchema, Annotations: v.Annotations}}}, Total: 1,
		Facets: ops.Facets{Lane: map[string]int{"destructive": 1}, Status: map[string]int{}, Server: map[string]int{}}}
}

func testTool(name string) ops.ToolView {
	return ops.ToolView{Name: "github:" + name, Server: "github", Tool: name, Description: "Delete <a> repository",
		InputSchema: json.RawMessage(`{"type":"object","maximum":9007199254740993}`),
		Annotations: json.RawMessage(`{"destructiveHint":true}`), CallWith: "call_tool_destructive"}
}

func (f *fake) Tool(_ context.Context, _ ops.Caller, in ops.ToolRef) (ops.ToolView, error) {
	if in.Server != "github" {
		return ops.ToolView{}, problem.Newf(problem.ServerNotFound, "There is no server '%s'.", in.Server)
	}
	return testTool(in.Tool), nil
}

func (f *fake) ToolDetail(ctx context.Context, c ops.Caller, in ops.ToolRef) (ops.ToolDetail, error) {
	v, err := f.Tool(ctx, c, in)
	return ops.ToolDetail{ToolView: v, Lane: "read"}, err
}

func (f *fake) SearchTools(_ context.Context, _ ops.Caller, q ops.SearchQuery) (ops.SearchAnswer, error) {
	f.searches = append(f.searches, q)
	f.lines = append(f.lines, q.Limit)
	return ops.SearchAnswer{Query: q.Query}, nil
}

func (f *fake) ToolStats(_ context.Context, _ ops.Caller, in ops.StatsQuery) (ops.ToolStats, error) {
	return ops.ToolStats{Since: in.Since, Calls: 3, Tools: []ops.ToolUse{}, Dead: []string{"github:list_repos"}}, nil
}

func testRecord() activity.Record {
	return activity.Record{ID: "01JG2K4AAAAAAAAAAAAAAAAAAA", Type: activity.ToolCall, Status: activity.Success,
		ServerName: "github", ToolName: "list_repos", Timestamp: time.Date(2026, 1, 15, 10, 30, 0, 0, time.UTC), DurationMS: 245,
		Arguments: json.RawMessage(`{"id":9007199254740993}`), Metadata: activity.Metadata{ToolVariant: "call_tool_read"}}
}

func (f *fake) Activities(_ context.Context, _ ops.Caller, filter activity.Filter) (ops.ActivityList, error) {
	f.filters = append(f.filters, filter)
	if filter.SessionID == "none" {
		return ops.ActivityList{}, nil
	}
	return ops.ActivityList{Activities: []activity.Record{testRecord()}, Total: 7, Limit: filter.Limit, Offset: filter.Offset, NextCursor: "next"}, f.failure
}

func (f *fake) Activity(_ context.Context, _ ops.Caller, in ops.RecordRef) (activity.Record, error) {
	if !strings.HasPrefix(testRecord().ID, in.ID) {
		return activity.Record{}, problem.Newf(problem.NotFound, "There is no record '%s'.", in.ID)
	}
	return testRecord(), nil
}

// Export writes two lines, or fails before it writes the first line.
func (f *fake) Export(_ context.Context, _ ops.Caller, in ops.ExportQuery) (ops.Download, error) {
	f.filters = append(f.filters, in.Filter)
	return ops.Download{Type: "text/csv; charset=utf-8", Name: "log.csv", Stream: func(_ context.Context, w io.Writer) error {
		if f.failure != nil {
			return f.failure
		}
		_, err := io.WriteString(w, "id\n1\n")
		return err
	}}, nil
}

func (f *fake) Status(context.Context, ops.Caller, ops.Nothing) (ops.Status, error) {
	return ops.Status{Version: "1.2.3", PID: 42, Surfaces: []ops.Surface{{Name: "mcp", Address: "http://127.0.0.1:8080/mcp"}}}, nil
}

// zero returns the operation with an implementation that does nothing.
func (o *Op[In, Out]) zero() Operation {
	return o.WithHandler(func(context.Context, ops.Caller, In) (out Out, _ error) { return out, nil })
}

// instead returns all operations, implemented by the fake. Operations that the fake does not implement do nothing.
func (f *fake) instead() []Operation {
	var all []Operation
	for _, o := range declared {
		if o.base().out != reflect.TypeFor[rawBody]() {
			all = append(all, o.(interface{ zero() Operation }).zero())
		}
	}
	all = append(all, []Operation{
		StreamEvents.WithHandler(f.Events), ExportActivity.WithHandler(f.Export), GetStatus.WithHandler(f.Status), ListActivity.WithHandler(f.Activities), GetActivity.WithHandler(f.Activity),
		ListServers.WithHandler(f.Servers), GetServer.WithHandler(f.Server), RestartServer.WithHandler(f.RestartServer), LoginServer.WithHandler(f.LoginServer),
		GetLogin.WithHandler(f.LoginProgress), CompleteLogin.WithHandler(f.CompleteLogin), LogoutServer.WithHandler(f.LogoutServer), GetServerLogs.WithHandler(f.ServerLogs), FollowServerLogs.WithHandler(f.FollowLogs),
		GetTool.WithHandler(f.ToolDetail), ListTools.WithHandler(f.Tools), SearchTools.WithHandler(f.SearchTools), GetToolStats.WithHandler(f.ToolStats), CallTool.WithHandler(f.callTool),
		ListApprovals.WithHandler(f.Approvals), AddServer.WithHandler(f.AddServer), ChangeServer.WithHandler(f.ChangeServer), RemoveServer.WithHandler(f.RemoveServer), EnableServer.WithHandler(f.EnableServer),
		DisableServer.WithHandler(f.DisableServer), QuarantineServer.WithHandler(f.QuarantineServer), ReviewServer.WithHandler(f.ReviewServer), ApproveServer.WithHandler(f.ApproveServer),
		EnableTool.WithHandler(f.EnableTool), DisableTool.WithHandler(f.DisableTool), ApproveTool.WithHandler(f.ApproveTool), BlockTool.WithHandler(f.BlockTool), DiffTool.WithHandler(f.DiffTool),
	}...)
	for _, of := range Primitives {
		all = append(all, of.Approve.WithHandler(f.ApproveOffer), of.Block.WithHandler(f.BlockOffer), of.Diff.WithHandler(f.DiffOffer))
	}
	return all
}

// serve starts a server over TCP, which requires a key.
func serve(t *testing.T, f *fake) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(serverOf(t, f))
	t.Cleanup(s.Close)
	return s
}

func serverOf(t *testing.T, f *fake) *Server {
	t.Helper()
	s, err := New(Deps{Implementations: homes, Refuse: f.RecordRefusal, Auth: auth.NewAuthenticator(testKey, nil), Logger: slog.New(slog.NewTextHandler(t.Output(), nil)), Version: "1.2.3", Replacements: f.instead()})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// serveSocket starts a server on a unix socket and returns its endpoint.
func serveSocket(t *testing.T, f *fake) Endpoint {
	t.Helper()
	dir := t.TempDir()
	l, err := ListenSocket(dir)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: serverOf(t, f), ConnContext: auth.MarkSocketConn}
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close(); <-done })
	return Endpoint{Socket: SocketPath(dir), Version: "9.9", Source: activity.SourceCLI}
}

type reply struct {
	status int
	header http.Header
	body   string
}

// ask sends one request with the key.
func ask(t *testing.T, s *httptest.Server, method, path, body string, header ...string) reply {
	t.Helper()
	req, err := http.NewRequest(method, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-API-Key", testKey)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		if req.Header.Del(header[i]); header[i+1] != "" {
			req.Header.Set(header[i], header[i+1])
		}
	}
	return send(t, req)
}

func send(t *testing.T, req *http.Request) reply {
	t.Helper()
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var b strings.Builder
	if _, err := copyAll(&b, resp.Body); err != nil {
		t.Fatal(err)
	}
	return reply{resp.StatusCode, resp.Header, b.String()}
}

// problemOf decodes a problem document and checks its form.
func problemOf(t *testing.T, r reply) problemView {
	t.Helper()
	if got := r.header.Get("Content-Type"); got != problemType {
		t.Fatalf("Content-Type = %q for %s, want %s", got, r.body, problemType)
	}
	var d problemView
	if err := json.Unmarshal([]byte(r.body), &d); err != nil {
		t.Fatalf("%v in %s", err, r.body)
	}
	if d.Status != r.status || d.Title == "" || d.Detail == "" || d.Code == "" || !strings.HasPrefix(d.Type, "urn:mcpproxy:problem:") {
		t.Fatalf("incomplete problem document (status %d): %s", r.status, r.body)
	}
	return d
}

type problemView struct {
	Type, Title, Detail, Hint string
	Status                    int
	Code                      problem.Code
	Details                   map[string]any
	ActivityID                string `json:"activity_id"`
}
