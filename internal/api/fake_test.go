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

	"mcpproxy/internal/access"
	"mcpproxy/internal/activity"
	"mcpproxy/internal/admin"
	"mcpproxy/internal/auth"
	"mcpproxy/internal/connect"
	"mcpproxy/internal/consent"
	"mcpproxy/internal/events"
	"mcpproxy/internal/gateway"
	"mcpproxy/internal/history"
	"mcpproxy/internal/inspect"
	"mcpproxy/internal/policy"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/prospect"
	"mcpproxy/internal/settings"
	"mcpproxy/internal/takeover"
	"mcpproxy/internal/trial"
)

var update = flag.Bool("update", false, "write goldens and generated documents")

// homes are those of all operations, where nobody asks them for anything.
var homes = []any{(*access.Access)(nil), (*consent.Consent)(nil), (*admin.Admin)(nil), (*admin.Toys)(nil), (*events.Hub)(nil), (*history.History)(nil), (*inspect.Inspector)(nil), (*settings.Settings)(nil), (*connect.Operations)(nil), (*takeover.Operations)(nil), (*trial.Trials)(nil), (*prospect.Prospects)(nil)}

var nobody = Deps{Homes: homes}

const testKey = "key-for-tests-0123456789"

// fake is a gateway with two servers that remembers what it was asked.
type fake struct {
	mu       sync.Mutex
	calls    []gateway.CallRequest
	refused  []gateway.Refusal
	callers  []gateway.Caller
	filters  []activity.Filter
	tools    []inspect.ToolQuery
	searches []inspect.SearchQuery
	lines    []int

	decisions []string
	added     []gateway.NewServer

	answer  gateway.CallResult
	failure error
	block   chan struct{} // when set, a call waits for it or for its caller to leave
	entered chan struct{} // closed when such a call came
	left    chan struct{} // closed when its caller left
}

func (f *fake) Events(context.Context, gateway.Caller, gateway.EventQuery) (gateway.Stream, error) {
	return func(_ context.Context, w io.Writer) error {
		_, err := io.WriteString(w, ": ping\n\n")
		return err
	}, nil
}

func (f *fake) callTool(ctx context.Context, c gateway.Caller, in CallInput) (CallAnswer, error) {
	r, err := f.Call(ctx, in.Request(c))
	return CallAnswer{Result: r.Result, IsError: r.IsError, Warnings: r.Warnings, ActivityID: r.ActivityID, Handle: r.Handle}, err
}

func (f *fake) Call(ctx context.Context, r gateway.CallRequest) (gateway.CallResult, error) {
	f.mu.Lock()
	f.calls = append(f.calls, r)
	f.mu.Unlock()
	if f.block != nil {
		close(f.entered)
		select {
		case <-f.block:
		case <-ctx.Done():
			close(f.left)
			return gateway.CallResult{}, ctx.Err()
		}
	}
	return f.answer, f.failure
}

func (f *fake) lastCall(t *testing.T) gateway.CallRequest {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.calls) == 0 {
		t.Fatal("the gateway was not called")
	}
	return f.calls[len(f.calls)-1]
}

func testServers() []gateway.ServerView {
	since := time.Date(2026, 1, 15, 10, 0, 0, 0, time.UTC)
	return []gateway.ServerView{
		{Name: "github", Protocol: "http", Enabled: true, State: "ready", ToolCount: 3, URL: "https://example.com/mcp", Since: &since,
			Tools: &gateway.Counts{policy.Callable: 2, policy.DisabledByConfig: 1}},
		{Name: "notes", Protocol: "stdio", Enabled: true, State: "failed", LastError: "exit status 1", Command: "notes"},
	}
}

func (f *fake) Refuse(_ context.Context, r gateway.Refusal) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refused = append(f.refused, r)
	return "refusal"
}

func (f *fake) Servers(context.Context, gateway.Caller, gateway.Nothing) (inspect.ServerList, error) {
	var all inspect.ServerList
	for _, s := range testServers() {
		all.Servers = append(all.Servers, inspect.ServerRow{ServerView: s, Waiting: 2})
	}
	return all, nil
}

func (f *fake) Server(_ context.Context, _ gateway.Caller, in gateway.ServerRef) (inspect.ServerDetail, error) {
	s, err := f.server(in.Name)
	return inspect.ServerDetail{ServerRow: inspect.ServerRow{ServerView: s}, CallTimeout: "5m0s"}, err
}

func (f *fake) server(name string) (gateway.ServerView, error) {
	for _, s := range testServers() {
		if s.Name == name {
			return s, nil
		}
	}
	return gateway.ServerView{}, problem.Newf(problem.ServerNotFound, "There is no server '%s'.", name).
		WithHint("Did you mean github?").With("nearest", []string{"github"})
}

func (f *fake) RestartServer(ctx context.Context, c gateway.Caller, in gateway.ServerRef) (gateway.ServerView, error) {
	f.mu.Lock()
	f.callers = append(f.callers, c)
	f.mu.Unlock()
	return f.server(in.Name)
}

func (f *fake) LoginServer(ctx context.Context, c gateway.Caller, in gateway.ServerRef) (gateway.LoginView, error) {
	f.mu.Lock()
	f.callers = append(f.callers, c)
	f.mu.Unlock()
	if _, err := f.Server(ctx, c, in); err != nil {
		return gateway.LoginView{}, err
	}
	return gateway.LoginView{Server: in.Name, State: "waiting", URL: "https://as.example/authorize?state=x"}, nil
}

func (f *fake) LoginProgress(ctx context.Context, c gateway.Caller, in gateway.ServerRef) (gateway.LoginView, error) {
	if _, err := f.Server(ctx, c, in); err != nil {
		return gateway.LoginView{}, err
	}
	if in.Name == "notes" {
		return gateway.LoginView{Server: in.Name, State: "failed", Error: "the authorization server answers \"access_denied\""}, nil
	}
	return gateway.LoginView{Server: in.Name, State: "done"}, nil
}

func (f *fake) LogoutServer(ctx context.Context, c gateway.Caller, in gateway.ServerRef) (gateway.ServerView, error) {
	f.mu.Lock()
	f.callers = append(f.callers, c)
	f.mu.Unlock()
	return f.server(in.Name)
}

func (f *fake) ServerLogs(_ context.Context, _ gateway.Caller, in inspect.LogQuery) (inspect.LogTail, error) {
	f.lines = append(f.lines, in.Lines)
	if _, err := f.server(in.Name); err != nil {
		return inspect.LogTail{}, err
	}
	return inspect.LogTail{Server: in.Name, Lines: []string{"started", "ready"}, Entries: []inspect.LogLine{{Stream: "stderr", Text: "started"}, {Stream: "stderr", Text: "ready"}}}, nil
}

func (f *fake) FollowLogs(_ context.Context, _ gateway.Caller, in inspect.LogQuery) (gateway.Stream, error) {
	if _, err := f.server(in.Name); err != nil {
		return nil, err
	}
	return func(_ context.Context, w io.Writer) error {
		_, err := io.WriteString(w, "data: {}\n\n")
		return err
	}, nil
}

func (f *fake) Tools(_ context.Context, _ gateway.Caller, filter inspect.ToolQuery) (inspect.ToolList, error) {
	f.tools = append(f.tools, filter)
	if filter.Server == "empty" {
		return inspect.ToolList{}, nil
	}
	return testList(), nil
}

func testList() inspect.ToolList {
	v := testTool("delete_repo")
	return inspect.ToolList{Tools: []inspect.ToolRow{{Name: v.Name, Server: v.Server, Tool: v.Tool, CallWith: v.CallWith, Lane: "destructive",
		ToolMore: &inspect.ToolMore{Description: &v.Description, InputSchema: v.InputSchema, Annotations: v.Annotations}}}, Total: 1,
		Facets: inspect.Facets{Lane: map[string]int{"destructive": 1}, Status: map[string]int{}, Server: map[string]int{}}}
}

func testTool(name string) gateway.ToolView {
	return gateway.ToolView{Name: "github:" + name, Server: "github", Tool: name, Description: "Delete <a> repository",
		InputSchema: json.RawMessage(`{"type":"object","maximum":9007199254740993}`),
		Annotations: json.RawMessage(`{"destructiveHint":true}`), CallWith: "call_tool_destructive"}
}

func (f *fake) Tool(_ context.Context, _ gateway.Caller, in gateway.ToolRef) (gateway.ToolView, error) {
	if in.Server != "github" {
		return gateway.ToolView{}, problem.Newf(problem.ServerNotFound, "There is no server '%s'.", in.Server)
	}
	return testTool(in.Tool), nil
}

func (f *fake) ToolDetail(ctx context.Context, c gateway.Caller, in gateway.ToolRef) (inspect.ToolDetail, error) {
	v, err := f.Tool(ctx, c, in)
	return inspect.ToolDetail{ToolView: v, Lane: "read"}, err
}

func (f *fake) SearchTools(_ context.Context, _ gateway.Caller, q inspect.SearchQuery) (inspect.SearchAnswer, error) {
	f.searches = append(f.searches, q)
	f.lines = append(f.lines, q.Limit)
	return inspect.SearchAnswer{Query: q.Query}, nil
}

func (f *fake) ToolStats(_ context.Context, _ gateway.Caller, in gateway.StatsQuery) (gateway.ToolStats, error) {
	return gateway.ToolStats{Since: in.Since, Calls: 3, Tools: []gateway.ToolUse{}, Dead: []string{"github:list_repos"}}, nil
}

func testRecord() activity.Record {
	return activity.Record{ID: "01JG2K4AAAAAAAAAAAAAAAAAAA", Type: activity.ToolCall, Status: activity.Success,
		ServerName: "github", ToolName: "list_repos", Timestamp: time.Date(2026, 1, 15, 10, 30, 0, 0, time.UTC), DurationMS: 245,
		Arguments: json.RawMessage(`{"id":9007199254740993}`), Metadata: activity.Metadata{ToolVariant: "call_tool_read"}}
}

func (f *fake) Activities(_ context.Context, _ gateway.Caller, filter activity.Filter) (gateway.ActivityList, error) {
	f.filters = append(f.filters, filter)
	if filter.SessionID == "none" {
		return gateway.ActivityList{}, nil
	}
	return gateway.ActivityList{Activities: []activity.Record{testRecord()}, Total: 7, Limit: filter.Limit, Offset: filter.Offset, NextCursor: "next"}, f.failure
}

func (f *fake) Activity(_ context.Context, _ gateway.Caller, in gateway.RecordRef) (activity.Record, error) {
	if !strings.HasPrefix(testRecord().ID, in.ID) {
		return activity.Record{}, problem.Newf(problem.NotFound, "There is no record '%s'.", in.ID)
	}
	return testRecord(), nil
}

// Export writes two lines, or fails before the first.
func (f *fake) Export(_ context.Context, _ gateway.Caller, in history.ExportQuery) (gateway.File, error) {
	f.filters = append(f.filters, in.Filter)
	return gateway.File{Type: "text/csv; charset=utf-8", Name: "log.csv", Stream: func(_ context.Context, w io.Writer) error {
		if f.failure != nil {
			return f.failure
		}
		_, err := io.WriteString(w, "id\n1\n")
		return err
	}}, nil
}

func (f *fake) Status(context.Context, gateway.Caller, gateway.Nothing) (gateway.Status, error) {
	return gateway.Status{Version: "1.2.3", PID: 42, Surfaces: []gateway.Surface{{Name: "mcp", Address: "http://127.0.0.1:8080/mcp"}}}, nil
}

// zero is an operation that does nothing.
func (o *Op[In, Out]) zero() Operation {
	return o.As(func(context.Context, gateway.Caller, In) (out Out, _ error) { return out, nil })
}

// instead are the operations, done by the fake; those that it has nothing for do
// nothing.
func (f *fake) instead() []Operation {
	var all []Operation
	for _, o := range declared {
		if o.head().out != reflect.TypeFor[page]() {
			all = append(all, o.(interface{ zero() Operation }).zero())
		}
	}
	all = append(all, []Operation{
		StreamEvents.As(f.Events), ExportActivity.As(f.Export), GetStatus.As(f.Status), ListActivity.As(f.Activities), GetActivity.As(f.Activity),
		ListServers.As(f.Servers), GetServer.As(f.Server), RestartServer.As(f.RestartServer), LoginServer.As(f.LoginServer),
		GetLogin.As(f.LoginProgress), LogoutServer.As(f.LogoutServer), GetServerLogs.As(f.ServerLogs), FollowServerLogs.As(f.FollowLogs),
		GetTool.As(f.ToolDetail), ListTools.As(f.Tools), SearchTools.As(f.SearchTools), GetToolStats.As(f.ToolStats), CallTool.As(f.callTool),
		ListApprovals.As(f.Approvals), AddServer.As(f.AddServer), ChangeServer.As(f.ChangeServer), RemoveServer.As(f.RemoveServer), EnableServer.As(f.EnableServer),
		DisableServer.As(f.DisableServer), QuarantineServer.As(f.QuarantineServer), ReviewServer.As(f.ReviewServer), ApproveServer.As(f.ApproveServer),
		EnableTool.As(f.EnableTool), DisableTool.As(f.DisableTool), ApproveTool.As(f.ApproveTool), BlockTool.As(f.BlockTool), DiffTool.As(f.DiffTool),
	}...)
	for _, of := range Offers {
		all = append(all, of.Approve.As(f.ApproveOffer), of.Block.As(f.BlockOffer), of.Diff.As(f.DiffOffer))
	}
	return all
}

// serve returns a server over TCP, where a key is needed.
func serve(t *testing.T, f *fake) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(serverOf(t, f))
	t.Cleanup(s.Close)
	return s
}

func serverOf(t *testing.T, f *fake) *Server {
	t.Helper()
	s, err := New(Deps{Homes: homes, Refuse: f.Refuse, Auth: auth.New(testKey, nil), Logger: slog.New(slog.NewTextHandler(t.Output(), nil)), Version: "1.2.3", Instead: f.instead()})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// serveSocket returns the endpoint of a server on a unix socket.
func serveSocket(t *testing.T, f *fake) Endpoint {
	t.Helper()
	dir := t.TempDir()
	l, err := ListenSocket(dir)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: serverOf(t, f), ConnContext: auth.ConnContext}
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
