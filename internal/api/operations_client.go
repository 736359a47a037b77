package api

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"mcpproxy/internal/activity"
	"mcpproxy/internal/gateway"
	"mcpproxy/internal/policy"
	"mcpproxy/internal/tool"
)

// Status asks what runs.
func (c *Client) Status(ctx context.Context) (out gateway.Status, err error) {
	return out, c.get(ctx, "/status", nil, &out)
}

// Servers asks for all servers.
func (c *Client) Servers(ctx context.Context) ([]gateway.ServerView, error) {
	var out ServerList
	err := c.get(ctx, "/servers", nil, &out)
	return out.Servers, err
}

// Server asks for one server.
func (c *Client) Server(ctx context.Context, name string) (out gateway.ServerView, err error) {
	return out, c.get(ctx, "/servers/"+segment(name), nil, &out)
}

// RestartServer restarts a server and gives its state after that.
func (c *Client) RestartServer(ctx context.Context, name string) (out gateway.ServerView, err error) {
	return out, c.do(ctx, restartPatience, http.MethodPost, "/servers/"+segment(name)+"/restart", nil, &out)
}

// LoginServer begins a login to a server and says where the person has to go.
func (c *Client) LoginServer(ctx context.Context, name string) (out gateway.LoginView, err error) {
	return out, c.do(ctx, loginPatience, http.MethodPost, "/servers/"+segment(name)+"/login", nil, &out)
}

// LoginProgress asks how far the last login to a server is.
func (c *Client) LoginProgress(ctx context.Context, name string) (out gateway.LoginView, err error) {
	return out, c.get(ctx, "/servers/"+segment(name)+"/login", nil, &out)
}

// LogoutServer forgets the login to a server.
func (c *Client) LogoutServer(ctx context.Context, name string) (out gateway.ServerView, err error) {
	return out, c.do(ctx, loginPatience, http.MethodPost, "/servers/"+segment(name)+"/logout", nil, &out)
}

// ServerLogs asks for the last lines of a server's log; 0 = the default number.
func (c *Client) ServerLogs(ctx context.Context, name string, lines int) (out LogTail, err error) {
	q := url.Values{}
	setNumber(q, "lines", lines)
	return out, c.get(ctx, "/servers/"+segment(name)+"/logs", q, &out)
}

// Tools asks for the tools that the filter selects.
func (c *Client) Tools(ctx context.Context, f gateway.ToolFilter) (out ToolList, err error) {
	q := url.Values{}
	set(q, "server", f.Server)
	set(q, "call_with", f.CallWith)
	set(q, "status", f.Status)
	return out, c.get(ctx, "/tools", q, &out)
}

// Tool asks for one tool.
func (c *Client) Tool(ctx context.Context, id tool.ID) (out gateway.ToolView, err error) {
	return out, c.get(ctx, toolPath(id), nil, &out)
}

// SearchTools asks for the callable tools that fit a query.
func (c *Client) SearchTools(ctx context.Context, query gateway.SearchQuery) (out gateway.SearchAnswer, err error) {
	q := url.Values{"q": {query.Query}}
	setNumber(q, "limit", query.Limit)
	if query.Operation != "" {
		q.Set("operation_type", query.Operation)
	}
	if query.Explain {
		q.Set("explain", "true")
	}
	return out, c.get(ctx, "/tools/search", q, &out)
}

// ToolStats asks how well tools are found and which are used since a time; the
// zero time is as far back as the log is read.
func (c *Client) ToolStats(ctx context.Context, since time.Time) (out gateway.ToolStats, err error) {
	q := url.Values{}
	setTime(q, "start_time", since)
	return out, c.get(ctx, "/tools/stats", q, &out)
}

// CallInput is a call as the client makes it. Args is a JSON value; nil = none.
type CallInput struct {
	Variant policy.Variant
	Name    string
	Args    json.RawMessage
	Intent  *activity.Intent
	Timeout time.Duration // 0 = the configured one
}

// Call calls a tool.
func (c *Client) Call(ctx context.Context, in CallInput) (out CallAnswer, err error) {
	body := struct {
		Variant string           `json:"tool_variant"`
		Name    string           `json:"name"`
		Args    json.RawMessage  `json:"args,omitempty"`
		Intent  *activity.Intent `json:"intent,omitempty"`
		Timeout string           `json:"timeout,omitempty"`
	}{in.Variant.String(), in.Name, in.Args, in.Intent, ""}
	if in.Timeout > 0 {
		body.Timeout = in.Timeout.String()
	}
	return out, c.do(ctx, 0, http.MethodPost, "/tools/call", body, &out)
}

// Activities asks for a page of the log.
func (c *Client) Activities(ctx context.Context, f activity.Filter) (out ActivityList, err error) {
	q := url.Values{}
	for name, values := range map[string][]string{
		"type": texts(f.Types), "status": texts(f.Statuses), "server": f.Servers, "tool": f.Tools,
		"intent_type": f.IntentTypes, "sensitivity": f.Sensitivities, "actor": f.Actors,
	} {
		if len(values) > 0 {
			q[name] = values
		}
	}
	set(q, "session_id", f.SessionID)
	set(q, "request_id", f.RequestID)
	set(q, "q", f.Search)
	set(q, "cursor", f.Cursor)
	setTime(q, "start_time", f.Since)
	setTime(q, "end_time", f.Until)
	setNumber(q, "limit", f.Limit)
	setNumber(q, "offset", f.Offset)
	return out, c.get(ctx, "/activity", q, &out)
}

// Activity asks for one record, by its id or a prefix that fits only one.
func (c *Client) Activity(ctx context.Context, idOrPrefix string) (out activity.Record, err error) {
	return out, c.get(ctx, "/activity/"+segment(idOrPrefix), nil, &out)
}

// segment is s as one segment of a path. Dots alone would be taken as a
// relative path on the way.
func segment(s string) string {
	if strings.Trim(s, ".") == "" {
		return strings.ReplaceAll(s, ".", "%2E")
	}
	return url.PathEscape(s)
}

func set(q url.Values, name, value string) {
	if value != "" {
		q.Set(name, value)
	}
}

func setNumber(q url.Values, name string, value int) {
	if value != 0 {
		q.Set(name, strconv.Itoa(value))
	}
}

func setTime(q url.Values, name string, t time.Time) {
	if !t.IsZero() {
		q.Set(name, t.UTC().Format(time.RFC3339Nano))
	}
}

func texts[T ~string](s []T) []string {
	var out []string
	for _, v := range s {
		out = append(out, string(v))
	}
	return out
}
