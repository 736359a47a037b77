package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpproxy/internal/api"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/ops/notify"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

var update = flag.Bool("update", false, "write goldens")

// fakeOperations implements the operations on a few servers and tools. The real API serves them on a real socket.
type fakeOperations struct {
	mu       sync.Mutex
	calls    []recordedCall
	filters  []activity.Filter
	switched []string // servers whose version was switched

	answer  api.CallAnswer
	failure error
	empty   bool
	pages   int // number of requested pages of tools
	// forgotten simulates a server whose approvals were lost.
	forgotten bool

	reviews   int // number of reviews of the server "soon", which lists its tools from the third review on
	decisions []string
	added     []ops.AddServerRequest
	looks     int      // number of requests about added servers
	warnings  []string // warnings in the answer to an added server
}

func parseRFC3339(s string) time.Time {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		panic(err)
	}
	return t
}

// recordedCall is a call that the fake received.
type recordedCall struct {
	api.CallInput
	variant  policy.CallToolVariant
	declared policy.DeclaredIntent
	timeout  time.Duration
	caller   ops.Caller
}

func neverRefuse[R any](context.Context, R) string { return "" }

func (f *fakeOperations) callTool(_ context.Context, c ops.Caller, in api.CallInput) (api.CallAnswer, error) {
	r := in.ToGateRequest(c)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, recordedCall{in, r.CallTool, r.Declared, r.Timeout, r.Caller})
	return f.answer, f.failure
}

func exampleServers() []ops.ServerView {
	since := parseRFC3339("2026-01-15T08:00:00Z")
	retry := parseRFC3339("2026-01-15T09:31:00Z")
	return []ops.ServerView{
		{Name: "github", Protocol: "http", Enabled: true, State: "ready", ToolCount: 16, URL: "https://api.example.com/mcp", Since: &since,
			ProtocolVersion: "2025-11-25", Tools: &ops.Counts{policy.Callable: 11, policy.DisabledByConfig: 3, policy.DisabledByUser: 1, ops.CountForClients: 1},
			Unhinted: &ops.Unhinted{Server: "github", Tools: 7, Reads: 5},
			Warnings: []string{"it names the same next page of its tools again and again, so that the list ends there", "it sends \x1b[31mevents\x1b[0m that are not JSON-RPC messages"}},
		{Name: "notes", Protocol: "stdio", Enabled: true, State: "failed", RetryAt: &retry, Restarts: 2,
			Detail:    "failed, exit status 1: \x1b[31mno such file\x1b[0m; see `mcpproxy upstream logs notes`",
			LastError: "exit status 1: \x1b[31mno such file\x1b[0m", LastErrorAt: &since, Command: "notes", Args: []string{"--dir", "/tmp"}},
		{Name: "old", Protocol: "stdio", State: "stopped", ToolCount: 4, Tools: &ops.Counts{policy.ServerDisabled: 4}},
		{Name: "推荐", Protocol: "stdio", Enabled: true, State: "connecting", Detail: "installing with npx, 40 s"},
	}
}

func (f *fakeOperations) Servers(context.Context, ops.Caller, ops.Nothing) (ops.ServerViews, error) {
	if f.empty {
		return ops.ServerViews{}, nil
	}
	return ops.ServerViews{Servers: exampleServers()}, nil
}

func (f *fakeOperations) Server(_ context.Context, _ ops.Caller, in ops.ServerRef) (ops.ServerView, error) {
	name := in.Name
	if name == "soon" || name == "asleep" {
		return ops.ServerView{Name: name, Protocol: "stdio", Enabled: name == "soon", Quarantined: true}, nil
	}
	for _, s := range exampleServers() {
		if s.Name == name {
			return s, nil
		}
	}
	for _, s := range f.added {
		if s.Name == name {
			return f.finishStart(s), nil
		}
	}
	return ops.ServerView{}, problem.Newf(problem.ServerNotFound, "There is no server '%s'.", name).WithHint("Did you mean github?")
}

// finishStart returns the view of an added server. From the second request on, the start of the server has ended.
func (f *fakeOperations) finishStart(s ops.AddServerRequest) ops.ServerView {
	v := ops.ServerView{Name: s.Name, Protocol: "stdio", Enabled: true, Quarantined: s.Quarantined, State: "connecting", Detail: "starting"}
	f.looks++
	switch {
	case f.looks < 2 || s.Name == "slow":
	case s.Name == "bad":
		v.State, v.LastError = "failed", "exit status 3: oh no"
	case s.Name == "closed":
		v.State, v.NeedsLogin = "needs_login", true
	case s.Name == "half":
		v.State, v.ToolCount, v.Tools = "ready", 14, &ops.Counts{policy.Callable: 12, policy.PendingApproval: 2}
	default:
		v.State, v.ToolCount = "ready", 1
	}
	return v
}

func (f *fakeOperations) RestartServer(ctx context.Context, c ops.Caller, in ops.ServerRef) (ops.ServerView, error) {
	return f.Server(ctx, c, in)
}

func (f *fakeOperations) LoginServer(ctx context.Context, c ops.Caller, in ops.LoginRequest) (ops.LoginView, error) {
	if _, err := f.Server(ctx, c, in.ServerRef); err != nil {
		return ops.LoginView{}, err
	}
	return ops.LoginView{Server: in.Name, State: "waiting", URL: "https://as.example/authorize?state=x"}, nil
}

func (f *fakeOperations) LoginProgress(ctx context.Context, c ops.Caller, in ops.ServerRef) (ops.LoginView, error) {
	if _, err := f.Server(ctx, c, in); err != nil {
		return ops.LoginView{}, err
	}
	if in.Name == "notes" {
		return ops.LoginView{Server: in.Name, State: "failed", Error: "the authorization server answers \"access_denied\""}, nil
	}
	return ops.LoginView{Server: in.Name, State: "done"}, nil
}

func (f *fakeOperations) LogoutServer(ctx context.Context, c ops.Caller, in ops.ServerRef) (ops.ServerView, error) {
	return f.Server(ctx, c, in)
}

func (f *fakeOperations) ServerLogs(ctx context.Context, c ops.Caller, in ops.LogQuery) (ops.LogTail, error) {
	if _, err := f.Server(ctx, c, in.ServerRef); err != nil {
		return ops.LogTail{}, err
	}
	all := []string{"started", "\x1b]0;owned\aready", "bye\u202e"}
	return ops.LogTail{Server: in.Name, Lines: all[len(all)-min(in.Lines, len(all)):]}, nil
}

func exampleTools() []ops.ToolView {
	return []ops.ToolView{
		{Name: "github:create_issue", Server: "github", Tool: "create_issue", Title: "Create issue",
			Description: "Create an issue.\nNeeds a title.", InputSchema: json.RawMessage(`{"type":"object","properties":{"title":{"type":"string"}},"maximum":9007199254740993}`),
			Annotations: json.RawMessage(`{}`), CallWith: "call_tool_write", Score: 0.95},
		{Name: "github:delete_repo", Server: "github", Tool: "delete_repo", Description: "Delete a repository \x1b[2J\u202eforever",
			Annotations: json.RawMessage(`{"destructiveHint":true}`), DeclaredAnnotations: json.RawMessage(`{"readOnlyHint":true}`),
			CallWith: "call_tool_destructive", Status: "disabled_by_config", Score: 0.5},
		{Name: "notes:列出/笔记.v2", Server: "notes", Tool: "列出/笔记.v2", Description: "列出所有笔记", Annotations: json.RawMessage(`{"readOnlyHint":true}`),
			CallWith: "call_tool_read", Score: 0.25},
	}
}

// Tools returns at most two tools per page and starts a new snapshot every fourth page.
func (f *fakeOperations) Tools(_ context.Context, _ ops.Caller, filter ops.ToolQuery) (ops.ToolList, error) {
	out := ops.ToolList{Tools: []ops.ToolRow{}, Snapshot: filter.Snapshot}
	if f.pages++; filter.Snapshot == "" || f.pages%4 == 0 {
		out.Snapshot = fmt.Sprint("list ", f.pages)
	}
	for _, v := range exampleTools() {
		if !f.empty && (filter.Server == "" || v.Server == filter.Server) && (filter.Operation == "" || v.CallWith == "call_tool_"+filter.Operation) &&
			(filter.Status == "" || filter.Status == cmp.Or(map[string]string{"notes:列出/笔记.v2": "disabled_by_user"}[v.Name], v.Status, "callable")) {
			row := ops.ToolRow{Name: v.Name, Server: v.Server, Tool: v.Tool, Title: v.Title, CallWith: v.CallWith, Status: v.Status}
			if filter.Detail == ops.Full {
				row.FullToolFields = &ops.FullToolFields{Description: &v.Description, InputSchema: v.InputSchema, Annotations: v.Annotations, DeclaredAnnotations: v.DeclaredAnnotations}
			}
			out.Tools = append(out.Tools, row)
		}
	}
	out.Total = len(out.Tools)
	out.Tools = out.Tools[min(filter.Offset, out.Total):]
	out.Tools = out.Tools[:min(2, len(out.Tools))]
	if !f.empty {
		out.Unhinted = []ops.Unhinted{{Server: "github", Tools: 34, Reads: 28}, {Server: "notes", Tools: 1, Reads: 1}, {Server: "c", Tools: 9, Reads: 1}, {Server: "d", Tools: 1, Reads: 1}}
	}
	return out, nil
}

func (f *fakeOperations) Tool(_ context.Context, _ ops.Caller, in ops.ToolRef) (ops.ToolView, error) {
	id := tool.ID(in)
	for _, v := range exampleTools() {
		if v.Name == id.String() {
			return v, nil
		}
	}
	return ops.ToolView{}, problem.Newf(problem.ToolNotFound, "The tool '%s' does not exist.", id).WithHint("Did you mean github:create_issue?")
}

func (f *fakeOperations) ToolDetail(ctx context.Context, c ops.Caller, in ops.ToolRef) (ops.ToolDetail, error) {
	v, err := f.Tool(ctx, c, in)
	return ops.ToolDetail{ToolView: v}, err
}

func (f *fakeOperations) SearchTools(_ context.Context, _ ops.Caller, q ops.SearchQuery) (ops.SearchAnswer, error) {
	if q.Query == "nothing" {
		return ops.SearchAnswer{Query: q.Query}, nil
	}
	found := exampleTools()
	if q.Limit > 0 {
		found = found[:min(q.Limit, len(found))]
	}
	if q.Explain {
		found[0].Why = []ops.Why{
			{Asked: q.Query, Found: []string{"create_issue"}, How: "named", Fields: []string{"name"}},
			{Asked: "creat", Found: []string{"create", "creating"}, How: "stem", Fields: []string{"name", "summary"}, Share: 0.634},
		}
	}
	a := ops.SearchAnswer{Query: q.Query, Total: 3}
	for _, v := range found {
		a.Tools = append(a.Tools, ops.FoundTool{ToolView: v, Tokens: 7})
	}
	return a, nil
}

func newExampleRecord(id, when, server, name, operation string, status activity.Status, ms int64) activity.Record {
	r := activity.Record{ID: id, Type: activity.ToolCall, Status: status, ServerName: server, ToolName: name, Timestamp: parseRFC3339(when), DurationMS: ms,
		Source: activity.SourceMCP, Actor: "agent", ClientName: "cursor", ClientVersion: "1.2"}
	if operation != "" {
		r.Metadata = activity.Metadata{Intent: &activity.Intent{OperationType: operation}, ToolVariant: "call_tool_" + operation}
	}
	return r
}

func exampleRecords() []activity.Record {
	full := newExampleRecord("01JG2K4ZZZ0000000000000001", "2026-01-15T09:30:00Z", "github", "create_issue", "write", activity.Success, 245)
	full.Arguments, full.Response = json.RawMessage(`{"title":"Bug\u001b[31m","n":9007199254740993}`), json.RawMessage(`{"content":[{"type":"text","text":"done"}]}`)
	full.ResponseBytes, full.ResponseTruncated, full.RequestID = 123456, true, "req-1"
	full.Metadata.Intent.DataSensitivity, full.Metadata.Intent.Reason = "private", "triage\nof the week"
	full.Metadata.Warnings = []string{"Tool 'x' is read-only: call_tool_read is enough."}
	full.OwnUS = 312
	approved := parseRFC3339("2026-01-14T08:00:00Z")
	full.Metadata.Decision = &activity.Decision{Outcome: activity.Warned, ConfigRevision: "0123456789ab", DecisionFacts: tool.DecisionFacts{
		Hints:    tool.ResolveHints(tool.Hints{ReadOnly: tool.True, Destructive: tool.False}, tool.Hints{Destructive: tool.False}, tool.Hints{ReadOnly: tool.True}, tool.Hints{}),
		CallWith: "call_tool_read", Fingerprint: tool.Fingerprint{0xab}.String(), ApprovedBy: "trust:scan", ApprovedAt: &approved}}
	blocked := newExampleRecord("01JG2K2ZZZ0000000000000003", "2026-01-15T09:29:30Z", "github", "delete_repo", "read", activity.Blocked, 0)
	first, last := parseRFC3339("2026-01-15T09:29:30Z"), parseRFC3339("2026-01-15T09:31:05Z")
	blocked.Repeated, blocked.FirstTime, blocked.LastTime = 1071, &first, &last
	blocked.Type, blocked.ErrorMessage = activity.PolicyDecision, "Tool 'github:delete_repo' is marked destructive by server, use call_tool_destructive instead of call_tool_read"
	blocked.Metadata.ErrorCode = "SERVER_MISMATCH"
	blocked.Metadata.Decision = &activity.Decision{Outcome: activity.Refused, Check: "hints", DecisionFacts: tool.DecisionFacts{CallWith: "call_tool_destructive"}}
	blocked.Metadata.Intent.Declared = json.RawMessage(`{"intent":{"operation_type":"look\u001b"}}`)
	change := activity.Record{ID: "01JG2K1ZZZ0000000000000004", Type: activity.ServerChange, Status: activity.Success, ServerName: "notes",
		Timestamp: parseRFC3339("2026-01-15T09:29:00Z"), Metadata: activity.Metadata{Action: "restart"}}
	return []activity.Record{
		full,
		newExampleRecord("01JG2K3ZZZ0000000000000002", "2026-01-15T09:29:45Z", "github", "list_repos", "read", activity.Success, 123),
		newExampleRecord("01JG2K3ZZZ0000000000000001", "2026-01-15T09:29:45Z", "推荐服务", "列出", "destructive", activity.Failed, 61_250),
		blocked, change,
		newExampleRecord("01JG2K0ZZZ0000000000000005", "2026-01-15T09:28:00Z", "notes", "wait\x1b[8m", "read", activity.Pending, 0),
	}
}

func (f *fakeOperations) ToolStats(_ context.Context, _ ops.Caller, in ops.StatsQuery) (ops.ToolStats, error) {
	since := in.Since
	if since.IsZero() {
		since = time.Date(2026, 1, 1, 9, 0, 0, 0, time.UTC)
	}
	last := time.Date(2026, 1, 15, 10, 30, 0, 0, time.UTC)
	return ops.ToolStats{Since: since, Calls: 42, Searches: 20, Recall1: 0.5, Recall3: 0.75, Recall5: 0.9, Recall10: 0.95, MRR: 0.64, Missed: 1,
		Tools: []ops.ToolUse{{Name: "github:create_issue", Calls: 40, Found: 19, Rank: 1.5, Last: last}, {Name: "notes:\x1b[31mread", Calls: 2, Missed: 1, Last: last}},
		Dead:  []string{"github:delete_repo", "github:list_repos"}, DeadAll: 2}, nil
}

func (f *fakeOperations) Activities(_ context.Context, _ ops.Caller, filter activity.Filter) (ops.ActivityList, error) {
	f.filters = append(f.filters, filter)
	if filter.SessionID == "none" {
		return ops.ActivityList{}, nil
	}
	p := ops.ActivityList{Activities: exampleRecords(), Relation: "eq", Total: 6, Limit: filter.Limit, Offset: filter.Offset}
	if filter.Limit < len(p.Activities) {
		p.Activities, p.NextCursor = p.Activities[:filter.Limit], "c1"
	}
	return p, nil
}

func (f *fakeOperations) Activity(_ context.Context, _ ops.Caller, in ops.RecordRef) (activity.Record, error) {
	for _, r := range exampleRecords() {
		if strings.HasPrefix(r.ID, in.ID) {
			return r, nil
		}
	}
	return activity.Record{}, problem.Newf(problem.NotFound, "There is no record '%s'.", in.ID)
}

func newSecretView(name, state string) ops.SecretView {
	return ops.SecretView{Name: name, State: state, Kept: "keyring", UsedBy: []string{"github", "notes"}}
}

// replacedOperations returns the operations that the fake implements.
func (f *fakeOperations) replacedOperations() []api.Operation {
	all := []api.Operation{
		api.TestNotifications.WithHandler(func(context.Context, ops.Caller, ops.Nothing) (notify.TestResult, error) {
			return notify.TestResult{Receivers: []notify.ReceiverResult{{Receiver: "desktop"}, {Receiver: "webhook 1 (hooks.slack.com)"}}}, nil
		}),
		api.PauseCalls.WithHandler(func(_ context.Context, _ ops.Caller, in ops.PauseRequest) (ops.PauseView, error) {
			return ops.PauseView{Paused: true, Reason: in.Reason, Cancelled: 3, Running: 1}, nil
		}),
		api.ResumeCalls.WithHandler(func(context.Context, ops.Caller, ops.Nothing) (ops.PauseView, error) { return ops.PauseView{}, nil }),
		api.ListOutdated.WithHandler(func(context.Context, ops.Caller, ops.Nothing) (ops.OutdatedList, error) {
			return ops.OutdatedList{Servers: []ops.ServerVersions{exampleVersions("notes"), {Name: "shell", Problem: "it names several packages"}}}, nil
		}),
		api.SearchRegistry.WithHandler(func(context.Context, ops.Caller, ops.RegistryQuery) (ops.RegistryEntries, error) {
			return exampleRegistry(), nil
		}),
		api.ShowRegistryEntry.WithHandler(func(context.Context, ops.Caller, ops.RegistryEntryRef) (ops.RegistryEntries, error) {
			return exampleRegistry(), nil
		}),
		api.AddFromRegistry.WithHandler(f.addFromRegistry),
		api.UpdateServer.WithHandler(f.updateServer),
		api.RollBackServer.WithHandler(func(_ context.Context, _ ops.Caller, in ops.ServerRef) (ops.ServerVersions, error) {
			return ops.ServerVersions{Name: in.Name, Package: "npm:notes-mcp", Pinned: &ops.VersionView{Version: "1.0.0"}, Switched: true, LeftToReview: 1}, nil
		}),
		api.TryPolicy.WithHandler(f.tryPolicy), api.Can.WithHandler(f.explainCall),
		api.GetStatus.WithHandler(f.Status), api.ListActivity.WithHandler(f.Activities), api.GetActivity.WithHandler(f.Activity),
		api.VerifyActivity.WithHandler(func(context.Context, ops.Caller, ops.Nothing) (activity.Verification, error) {
			return activity.Verification{OK: true, Records: 1_000_000, Entries: 2_000_000, TookMS: 12_000, Signer: strings.Repeat("a1", 32)}, nil
		}),
		api.ExportActivity.WithHandler(func(_ context.Context, _ ops.Caller, in ops.ExportQuery) (ops.Download, error) {
			f.filters = append(f.filters, in.Filter)
			return ops.Download{Type: "text/csv", Name: "x.csv", Stream: func(_ context.Context, w io.Writer) error {
				_, err := io.WriteString(w, "id\n")
				return err
			}}, nil
		}),
		api.GetSummary.WithHandler(func(_ context.Context, _ ops.Caller, in ops.SummaryQuery) (ops.Summary, error) {
			s := ops.Summary{Since: parseRFC3339("2026-01-14T10:00:00Z"), Until: parseRFC3339("2026-01-15T10:00:00Z")}
			s.Summary = activity.Summary{Calls: 40, Refused: 3, Failed: 5, FailedTool: 4, FailedServer: 1, P50: 12, P95: 340, OwnP50: 210, OwnP95: 900,
				Groups: []activity.Tally{{Key: string(in.Group) + " github:create_issue", Calls: 30, Refused: 3, Failed: 3, P50: 15, P95: 500, OwnP50: 200, Last: parseRFC3339("2026-01-15T09:00:00Z")}, {Key: "", Calls: 10}}}
			return s, nil
		}),
		api.RedactActivity.WithHandler(func(ctx context.Context, c ops.Caller, in ops.RedactRequest) (activity.Record, error) {
			return f.Activity(ctx, c, ops.RecordRef{ID: in.ID})
		}),
		api.ListServers.WithHandler(func(ctx context.Context, c ops.Caller, in ops.Nothing) (all ops.ServerList, err error) {
			list, err := f.Servers(ctx, c, in)
			for _, s := range list.Servers {
				all.Servers = append(all.Servers, ops.ServerRow{ServerView: s, Waiting: 1})
			}
			return all, err
		}),
		api.GetServer.WithHandler(func(ctx context.Context, c ops.Caller, in ops.ServerRef) (ops.ServerDetail, error) {
			s, err := f.Server(ctx, c, in)
			return ops.ServerDetail{ServerRow: ops.ServerRow{ServerView: s, Waiting: 1}}, err
		}),
		api.ListSecrets.WithHandler(func(context.Context, ops.Caller, ops.Nothing) (ops.SecretViews, error) {
			return ops.SecretViews{Secrets: []ops.SecretView{newSecretView("GITHUB_TOKEN", "set"), newSecretView("TICKETS", "missing"), newSecretView("DESK", "locked")}}, nil
		}),
		api.SetSecret.WithHandler(func(_ context.Context, _ ops.Caller, in ops.SetSecretRequest) (ops.SecretView, error) {
			return newSecretView(in.Name, "set"), nil
		}),
		api.DeleteSecret.WithHandler(func(_ context.Context, _ ops.Caller, in ops.SecretRef) (ops.SecretView, error) {
			return newSecretView(in.Name, "missing"), nil
		}),
		api.RestartServer.WithHandler(f.RestartServer), api.LoginServer.WithHandler(f.LoginServer),
		api.GetLogin.WithHandler(f.LoginProgress), api.LogoutServer.WithHandler(f.LogoutServer), api.GetServerLogs.WithHandler(f.ServerLogs),
		api.FollowServerLogs.WithHandler(func(context.Context, ops.Caller, ops.LogQuery) (ops.StreamFunc, error) {
			return func(_ context.Context, w io.Writer) error {
				_, err := io.WriteString(w, "data: {\"stream\":\"stderr\",\"text\":\"first\"}\n\n: ping\n\ndata: {\"stream\":\"mcpproxy\",\"text\":\"second\\u001b[31mx\"}\n\n")
				return err
			}, nil
		}),
		api.GetConfig.WithHandler(func(context.Context, ops.Caller, ops.Nothing) (ops.Config, error) {
			return ops.Config{Path: "/home/ada/mcp_config.json", InForce: json.RawMessage(`{"listen":"127.0.0.1:9999"}`)}, nil
		}),
		api.GetTool.WithHandler(f.ToolDetail), api.ListTools.WithHandler(f.Tools), api.SearchTools.WithHandler(f.SearchTools), api.GetToolStats.WithHandler(f.ToolStats), api.CallTool.WithHandler(f.callTool),
		api.ListApprovals.WithHandler(f.Approvals), api.AddServer.WithHandler(f.AddServer), api.ChangeServer.WithHandler(f.ChangeServer), api.RemoveServer.WithHandler(f.RemoveServer), api.EnableServer.WithHandler(f.EnableServer),
		api.DisableServer.WithHandler(f.DisableServer), api.QuarantineServer.WithHandler(f.QuarantineServer), api.ReviewServer.WithHandler(f.ReviewServer), api.ApproveServer.WithHandler(f.ApproveServer),
		api.ChangeTool.WithHandler(f.ChangeTool), api.EnableTool.WithHandler(f.EnableTool), api.DisableTool.WithHandler(f.DisableTool), api.ApproveTool.WithHandler(f.ApproveTool), api.ApproveTools.WithHandler(f.ApproveTools), api.BlockTool.WithHandler(f.BlockTool), api.UnblockTool.WithHandler(f.UnblockTool), api.DiffTool.WithHandler(f.DiffTool),
	}
	all = append(all, f.tokenAndProfileOperations()...)
	all = append(all, f.pendingAndLeaseOperations()...)
	for _, of := range api.Primitives {
		all = append(all, of.Approve.WithHandler(f.ApproveOffer), of.Block.WithHandler(f.BlockOffer), of.Unblock.WithHandler(f.UnblockOffer), of.Diff.WithHandler(f.DiffOffer))
	}
	return all
}

func (f *fakeOperations) Status(context.Context, ops.Caller, ops.Nothing) (ops.Status, error) {
	return ops.Status{Version: "1.2.3", PID: 42, StartedAt: parseRFC3339("2026-01-15T08:00:00Z"), UptimeSeconds: 5430,
		Servers: ops.StatusServers{Total: 4, Enabled: 3, Ready: 1, NotReady: []ops.NotReady{
			{Name: "notes", State: "failed", Detail: "failed, exit status 1: no such file; see `mcpproxy upstream logs notes`"},
			{Name: "推荐", State: "connecting", Detail: "installing with npx, 40 s"},
		}}, Tools: ops.StatusTools{Total: 20, Callable: 12},
		Surfaces:   []ops.Surface{{Name: "MCP", Address: "http://127.0.0.1:8080/mcp"}},
		ConfigPath: "/home/me/.mcpproxy/mcp_config.json", DataDir: "/home/me/.mcpproxy", NeedsRestart: []string{"listen"},
		ConfigError: "mcp_config.json:3:5: unknown key \"tool_limit\"", Warnings: []string{"others can read the configuration file"}}, nil
}

// testEnv is a test environment: a data directory with or without a daemon, and the input of commands.
type testEnv struct {
	t     *testing.T
	dir   string
	stdin string
	env   map[string]string
	deps  Deps
}

func newTestEnv(t *testing.T) *testEnv {
	t.Helper()
	return &testEnv{t: t, dir: t.TempDir(), env: map[string]string{"HOME": t.TempDir()}}
}

// newEnvWithDaemon starts the API on the socket of a new data directory.
func newEnvWithDaemon(t *testing.T, f *fakeOperations) *testEnv {
	t.Helper()
	return newEnvWithWrappedDaemon(t, f, func(h http.Handler) http.Handler { return h })
}

// newEnvWithWrappedDaemon is newEnvWithDaemon with a wrapper around the API handler.
func newEnvWithWrappedDaemon(t *testing.T, f *fakeOperations, before func(http.Handler) http.Handler) *testEnv {
	t.Helper()
	w := newTestEnv(t)
	l, err := api.ListenSocket(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	deps := api.Deps{Implementations: []any{(*ops.AccessOperations)(nil), (*ops.CallApprovals)(nil), (*ops.Admin)(nil), (*ops.SampleServers)(nil), (*ops.EventHub)(nil), (*notify.Notifier)(nil), (*ops.ActivityHistory)(nil), (*ops.Inspector)(nil), (*ops.ConfigOperations)(nil), (*ops.ClientOperations)(nil), (*ops.ImportOperations)(nil), (*ops.TrialOperations)(nil), (*ops.Explainer)(nil), (*ops.VersionOperations)(nil)}, Auth: auth.NewAuthenticator("key-for-tests-0123456789", nil), Logger: slog.New(slog.DiscardHandler), Version: "1.2.3", Replacements: f.replacedOperations()}
	deps.Refuse = neverRefuse
	h, err := api.New(deps)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: before(h), ConnContext: auth.MarkSocketConn}
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close(); <-done })
	return w
}

type commandOutput struct {
	code           int
	stdout, stderr string
}

// runCommand runs a command in the test environment.
func (w *testEnv) runCommand(args ...string) commandOutput {
	w.t.Helper()
	return w.runCommandWithContext(w.t.Context(), args...)
}

func (w *testEnv) runCommandWithContext(ctx context.Context, args ...string) commandOutput {
	w.t.Helper()
	var stdout, stderr bytes.Buffer
	d := w.deps
	d.Version, d.Stdin, d.Stdout, d.Stderr = "1.2.3", strings.NewReader(w.stdin), &stdout, &stderr
	d.Now = func() time.Time { return parseRFC3339("2026-01-15T10:00:00Z") }
	d.Local = time.FixedZone("test", 3600)
	d.CompletionTimeout = time.Minute
	d.Getenv = func(name string) string { return w.env[name] }
	args = append([]string{"--data-dir", w.dir}, args...)
	code := Run(ctx, args, d)
	return commandOutput{code, stdout.String(), stderr.String()}
}

// compareWithGolden compares got with testdata/name.
func compareWithGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs.\ngot:\n%s\nwant:\n%s", path, got, want)
	}
}
