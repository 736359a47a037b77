package api

import (
	"context"
	"crypto/rand"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"mcpproxy/internal/activity"
	"mcpproxy/internal/gateway"
	"mcpproxy/internal/policy"
	"mcpproxy/internal/tool"
)

// Bounds of the lists.
const (
	defaultLogLines = 100
	maxLogLines     = 10_000
	maxSearch       = 100
)

// routes is the table: all there is under Prefix.
func (s *Server) routes() []route {
	server := param{name: "name", in: inPath, doc: "The name of the server."}
	return slices.Concat([]route{
		{method: http.MethodGet, path: "/status", id: "getStatus", right: Look,
			summary: "What runs: version, uptime, counts, surfaces", bind: handle(s.status)},
		{method: http.MethodGet, path: "/servers", id: "listServers", right: Look,
			summary: "All servers", bind: handle(s.servers)},
		{method: http.MethodGet, path: "/servers/{name}", id: "getServer", right: Look,
			summary: "One server", params: []param{server}, bind: handle(s.server)},
		{method: http.MethodPost, path: "/servers/{name}/restart", id: "restartServer", right: Operate,
			summary: "Stop a server and start it anew", params: []param{server}, bind: handle(s.restart)},
		{method: http.MethodPost, path: "/servers/{name}/login", id: "loginServer", right: Operate,
			summary: "Begin the login of a person to a server", params: []param{server}, bind: handle(s.login)},
		{method: http.MethodGet, path: "/servers/{name}/login", id: "getLogin", right: Look,
			summary: "How far the last login to a server is", params: []param{server}, bind: handle(s.loginProgress)},
		{method: http.MethodPost, path: "/servers/{name}/logout", id: "logoutServer", right: Operate,
			summary: "Forget the login to a server", params: []param{server}, bind: handle(s.logout)},
		{method: http.MethodGet, path: "/servers/{name}/logs", id: "getServerLogs", right: Look,
			summary: "The end of a server's log", params: []param{server, logLines()}, bind: handle(s.logs)},
		{method: http.MethodGet, path: "/servers/{name}/tools/{tool...}", id: "getTool", right: Look,
			summary: "One tool with its schemas", bind: handle(s.tool),
			params: []param{server, {name: "tool", in: inPath, doc: "The tool's own name, best percent-encoded as one segment: a slash in it is %2F. Slashes are taken as they are unless the last segment is diff."}}},
		{method: http.MethodGet, path: "/tools", id: "listTools", right: Look,
			summary: "All tools, callable or not", params: toolParams(), bind: handle(s.tools)},
		{method: http.MethodGet, path: "/tools/search", id: "searchTools", right: Look,
			summary: "The callable tools that fit a query, best first", params: searchParams(), bind: handle(s.searchTools)},
		{method: http.MethodGet, path: "/tools/stats", id: "getToolStats", right: Look,
			summary: "How well tools are found and which are used, by the log", bind: handle(s.toolStats),
			params: []param{{name: "start_time", kind: moment, doc: "Only calls from this time on."}}},
		{method: http.MethodPost, path: "/tools/call", id: "callTool", right: Call,
			summary: "Call a tool: the same decision and the same record as on /mcp", body: callForm(), bind: handle(s.call)},
		{method: http.MethodGet, path: "/activity", id: "listActivity", right: Look,
			summary: "The log, newest first", params: activityParams(), bind: handle(s.activities)},
		{method: http.MethodGet, path: "/activity/{id}", id: "getActivity", right: Look, summary: "One record of the log",
			params: []param{{name: "id", in: inPath, doc: "The id of the record, or a prefix that fits only one."}}, bind: handle(s.activity)},
		{method: http.MethodGet, path: "/openapi.json", id: "getDocument", right: Look,
			summary: "This document", bind: handlePage("application/openapi+json", s.Document)},
		{method: http.MethodGet, path: "/docs", id: "readDocument", right: Look,
			summary: "This document as a page", bind: handlePage("text/html; charset=utf-8", s.docsPage)},
	}, s.trustRoutes())
}

func logLines() param {
	return param{name: "lines", kind: number, min: 1, max: maxLogLines, preset: defaultLogLines, doc: "How many lines."}
}

func toolParams() []param {
	return []param{
		{name: "server", doc: "Only tools of this server."},
		{name: "operation_type", allowed: operations(), doc: "Only tools whose call_with is the variant of this operation."},
		{name: "call_with", allowed: variants(), doc: "Only tools that are called with this variant."},
		{name: "status", allowed: ToolStatuses(), doc: "Only tools with this status; callable means none."},
	}
}

func searchParams() []param {
	return []param{
		{name: "q", required: true, doc: "What the tool should do, in words."},
		{name: "limit", kind: number, min: 1, max: maxSearch, doc: "How many tools at most; the configured tools_limit when not given."},
		{name: "operation_type", allowed: operations(), doc: "Only tools whose call_with is the variant of this operation."},
		{name: "explain", allowed: []string{"true", "false"}, doc: "Whether each tool says why it was found."},
	}
}

// ToolStatuses are the statuses of a tool as filters take them: callable
// stands for those that have none.
func ToolStatuses() []string {
	out := []string{"callable"}
	for _, s := range policy.Statuses() {
		if s != policy.Callable {
			out = append(out, s.String())
		}
	}
	return out
}

func operations() []string {
	return []string{policy.Read.String(), policy.Write.String(), policy.Destructive.String()}
}

func variants() []string {
	return []string{policy.CallToolRead.String(), policy.CallToolWrite.String(), policy.CallToolDestructive.String()}
}

// ServerList is the answer of GET /servers.
type ServerList struct {
	Servers []gateway.ServerView `json:"servers"`
}

// LogTail is the answer of GET /servers/{name}/logs.
type LogTail struct {
	Server string   `json:"server"`
	Lines  []string `json:"lines" doc:"Oldest first."`
}

// ToolList is the answer of GET /tools.
type ToolList struct {
	Tools []gateway.ToolView `json:"tools"`
	Total int                `json:"total"`
}

func (s *Server) status(ctx context.Context, _ *request) (gateway.Status, error) {
	return s.deps.Gateway.Status(ctx), nil
}

func (s *Server) servers(ctx context.Context, _ *request) (ServerList, error) {
	return ServerList{nonNil(s.deps.Gateway.Servers(ctx))}, nil
}

func (s *Server) server(ctx context.Context, r *request) (gateway.ServerView, error) {
	return s.deps.Gateway.Server(ctx, r.path("name"))
}

func (s *Server) restart(ctx context.Context, r *request) (gateway.ServerView, error) {
	if err := s.deps.Gateway.RestartServer(ctx, r.path("name"), caller(r)); err != nil {
		return gateway.ServerView{}, err
	}
	return s.deps.Gateway.Server(ctx, r.path("name"))
}

func (s *Server) login(ctx context.Context, r *request) (gateway.LoginView, error) {
	return s.deps.Gateway.LoginServer(ctx, r.path("name"), caller(r))
}

func (s *Server) loginProgress(ctx context.Context, r *request) (gateway.LoginView, error) {
	return s.deps.Gateway.LoginProgress(ctx, r.path("name"))
}

func (s *Server) logout(ctx context.Context, r *request) (gateway.ServerView, error) {
	return s.deps.Gateway.LogoutServer(ctx, r.path("name"), caller(r))
}

func (s *Server) logs(ctx context.Context, r *request) (LogTail, error) {
	lines, err := s.deps.Gateway.ServerLogs(ctx, r.path("name"), r.query.number("lines"))
	return LogTail{r.path("name"), nonNil(lines)}, err
}

func (s *Server) tools(ctx context.Context, r *request) (ToolList, error) {
	f := gateway.ToolFilter{Server: r.query.text("server"), CallWith: r.query.text("call_with"), Status: r.query.text("status")}
	if wanted := r.query.text("operation_type"); wanted != "" {
		variant := "call_tool_" + wanted
		if f.CallWith != "" && f.CallWith != variant {
			return ToolList{Tools: []gateway.ToolView{}}, nil // no tool has two
		}
		f.CallWith = variant
	}
	found := nonNil(s.deps.Gateway.Tools(ctx, f))
	return ToolList{found, len(found)}, nil
}

func (s *Server) searchTools(ctx context.Context, r *request) (gateway.SearchAnswer, error) {
	a, err := s.deps.Gateway.SearchTools(ctx, gateway.SearchQuery{
		Query: r.query.text("q"), Limit: r.query.number("limit"),
		Operation: r.query.text("operation_type"), Explain: r.query.text("explain") == "true",
	})
	a.Tools = nonNil(a.Tools)
	return a, err
}

func (s *Server) toolStats(ctx context.Context, r *request) (gateway.ToolStats, error) {
	return s.deps.Gateway.ToolStats(ctx, r.query.moment("start_time"))
}

func (s *Server) tool(ctx context.Context, r *request) (gateway.ToolView, error) {
	return s.deps.Gateway.Tool(ctx, tool.ID{Server: r.path("name"), Tool: r.path("tool")})
}

// SourceHeader is how MCPProxy's own programs say which of them asks: cli or ui.
const SourceHeader = "X-MCPProxy-Source"

// requestIDHeader is taken over into the record, so that a caller can find it.
const requestIDHeader = "X-Request-Id"

// maxRequestID bounds the id of a request that comes from outside.
const maxRequestID = 128

// caller is who asks, as the record keeps it. Every actor that gets here is
// the admin, so the source is as he says.
func caller(r *request) gateway.Caller {
	c := gateway.Caller{Actor: r.actor, Source: activity.SourceREST, RequestID: r.http.Header.Get(requestIDHeader)}
	switch said := activity.Source(r.http.Header.Get(SourceHeader)); said {
	case activity.SourceCLI, activity.SourceUI:
		c.Source = said
	}
	if c.RequestID == "" || len(c.RequestID) > maxRequestID || !utf8.ValidString(c.RequestID) {
		c.RequestID = rand.Text()
	}
	product, _, _ := strings.Cut(r.http.UserAgent(), " ")
	c.ClientName, c.ClientVersion, _ = strings.Cut(clip(product), "/")
	return c
}
