package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/problem"
)

const (
	info  = `{"name":"mcpproxy","title":"MCPProxy","version":"1 \"x\""}`
	named = `"_meta":{"io.modelcontextprotocol/serverInfo":` + info + `}`
)

func newWriter() (*session.ReplyBuilder, *strings.Builder) {
	var logs strings.Builder
	return session.NewReplyBuilder(`1 "x"`, slog.New(slog.NewTextHandler(&logs, nil))), &logs
}

// whole returns a result with its front and back parts, as it is sent.
func whole(t *testing.T, a session.Reply) string {
	t.Helper()
	text := string(a.Result)
	if a.Front != nil {
		text = string(a.Front) + strings.TrimPrefix(text, "{") + string(a.Back)
	}
	if !json.Valid([]byte(text)) {
		t.Errorf("the result is not JSON: %s", text)
	}
	return text
}

// TestPassed checks that a server's result is unchanged, except that the modern protocol requires a result type and the
// proxy's name. They are added if the server has not set them.
func TestPassed(t *testing.T) {
	w, _ := newWriter()
	const typed = `"resultType":"complete",`
	for raw, want := range map[string]string{
		`{}`:                                  `{"resultType":"complete",` + named + `}`,
		`{ }`:                                 `{"resultType":"complete",` + named + ` }`,
		`{"n":9007199254740993}`:              `{` + typed + named + `,"n":9007199254740993}`,
		`{"resultType":"task","n":1}`:         `{` + named + `,"resultType":"task","n":1}`,
		`{"text":"\"resultType\" \"_meta\""}`: `{` + typed + named + `,"text":"\"resultType\" \"_meta\""}`,
		`{"_meta":{"a":1},"n":1}`:             `{` + typed + `"_meta":{"a":1,"io.modelcontextprotocol/serverInfo":` + info + `},"n":1}`,
		`{"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"own"}}}`: `{` + typed + `"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"own"}}}`,
		`{"_meta":7,"resultType":"x"}`:                                    `{"_meta":7,"resultType":"x"}`,
	} {
		if got := whole(t, w.NewForwardedReply(true, json.RawMessage(raw))); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", raw, got, want)
		}
		if got := whole(t, w.NewForwardedReply(false, json.RawMessage(raw))); got != raw {
			t.Errorf("%s is changed to %s for a legacy client", raw, got)
		}
	}
	large := json.RawMessage(`{"content":"` + strings.Repeat("x", 1<<20) + `"}`)
	if n := testing.AllocsPerRun(10, func() { w.NewForwardedReply(true, large) }); n > 0 {
		t.Errorf("%v allocations for a large result", n)
	}
}

// TestTool checks that the result of a built-in tool contains the same JSON as text and as structured content.
func TestTool(t *testing.T) {
	w, _ := newWriter()
	const body = `"content":[{"type":"text","text":"{\"a\":\"\\n\"}"}],"structuredContent":{"a":"\n"}}`
	for modern, want := range map[bool]string{false: `{` + body, true: `{"resultType":"complete",` + named + `,` + body} {
		if got := whole(t, w.BuiltInToolReply(modern, json.RawMessage(`{"a":"\n"}`))); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// TestProblem checks that the text of a failure is the same everywhere: as a tool result for a tool call, otherwise as
// an error with a status.
func TestProblem(t *testing.T) {
	w, logs := newWriter()
	said := func(status int) *problem.Problem {
		return problem.New(problem.UpstreamError, "It said no.", "").With("http_status", status)
	}
	for _, c := range []struct {
		method         string
		err            error
		legacy, modern int    // HTTP statuses; -1 means a tool result
		message, data  string // members of an error
	}{
		{"tools/call", problem.New(problem.ToolLocked, "Locked.", "Ask."), -1, -1, "", ""},
		{"tools/call", problem.New(problem.ToolNotFound, "None.", "Look."), 200, 400, "None. Look.", `{"code":"TOOL_NOT_FOUND"}`},
		{"tools/call", problem.New(problem.InvalidName, "No name", ""), 200, 400, "No name", `{"code":"INVALID_NAME"}`},
		{"prompts/get", problem.New(problem.ServerNotFound, "No server", "Add it."), 404, 404, "No server. Add it.", `{"code":"SERVER_NOT_FOUND"}`},
		{"prompts/get", problem.New(problem.ToolLocked, "Locked.", "Ask.").With("status", "quarantined"), 200, 400, "Locked. Ask.", `{"code":"TOOL_LOCKED","status":"quarantined"}`},
		{"prompts/get", problem.New(problem.Timeout, "Slow.", ""), 200, 200, "Slow.", `{"code":"TIMEOUT"}`},
		{"prompts/get", said(429), 429, 429, "It said no.", `{"code":"UPSTREAM_ERROR"}`},
		{"prompts/get", said(404), 200, 404, "It said no.", `{"code":"UPSTREAM_ERROR"}`},
		{"prompts/get", said(401), 200, 200, "It said no.", `{"code":"UPSTREAM_ERROR"}`},
		{"prompts/get", said(403), 200, 200, "It said no.", `{"code":"UPSTREAM_ERROR"}`},
	} {
		for modern, want := range map[bool]int{false: c.legacy, true: c.modern} {
			a := w.ProblemReply(modern, c.method, c.err)
			if want < 0 {
				if got := whole(t, a); a.Error != nil || !strings.Contains(got, `"isError":true`) || !strings.Contains(got, `"text":"Locked.\nHint: Ask."`) ||
					!strings.Contains(got, `"structuredContent":{"error":{"code":"TOOL_LOCKED"`) {
					t.Errorf("%s %v: got %s", c.method, c.err, got)
				}
				continue
			}
			if a.Error == nil || a.Status != want || a.Error.Message != c.message || string(a.Error.Data) != c.data {
				t.Errorf("%s %v, modern %v: %+v", c.method, c.err, modern, a)
			}
		}
	}
	if logs.Len() > 0 {
		t.Errorf("logged: %s", logs)
	}
}

// TestOwnFaults checks that an internal error is logged and not shown to the client, and that a client's disconnect is
// not logged.
func TestOwnFaults(t *testing.T) {
	w, logs := newWriter()
	bug := fmt.Errorf("open /home/somebody/x: %w", errors.New("a bug"))
	for _, say := range []func() string{func() string { return whole(t, w.ToolErrorReply(true, bug)) }, func() string { return w.ToRPCError(bug).Message }} {
		said := say()
		if strings.Contains(said, "somebody") || !strings.Contains(logs.String(), "somebody") {
			t.Errorf("got %s, logged %s", said, logs)
		}
		logs.Reset()
	}
	_, _ = w.ToolErrorReply(false, context.Canceled), w.ToRPCError(fmt.Errorf("x: %w", context.Canceled))
	if w.ToRPCError(session.ErrEnded); logs.Len() > 0 {
		t.Errorf("logged: %s", logs)
	}
}

func TestVersion(t *testing.T) {
	for asked, want := range map[string]string{`{"protocolVersion":"2025-03-26"}`: "2025-03-26", `{"protocolVersion":"1999-01-01"}`: "2025-11-25",
		`{"protocolVersion":7}`: "2025-11-25", `{}`: "2025-11-25", `{"protocolVersion":"2026-07-28"}`: "2025-11-25"} {
		if got := session.NegotiateVersion(json.RawMessage(asked)); got != want {
			t.Errorf("%s: got %s", asked, got)
		}
	}
}

// TestRepeated checks that errors repeat only a part of a client's input.
func TestRepeated(t *testing.T) {
	long := strings.Repeat("é", 1000)
	for _, said := range []string{session.MethodNotFoundReply(long).Error.Message, session.QuoteClipped(long)} {
		if len(said) > 200 || !strings.Contains(said, "éé") || strings.Contains(said, "\uFFFD") {
			t.Errorf("%d bytes: %s", len(said), said)
		}
	}
	if e := session.InvalidParamsError("x"); e.Code != -32602 || e.Message != "Invalid params: x" {
		t.Errorf("got %+v", e)
	}
}

// TestRefusalText checks that the text alone contains everything that helps to fix the call, and nothing twice.
func TestRefusalText(t *testing.T) {
	w, _ := newWriter()
	properties := `{"properties":{"a":{"type":"integer"}}}`
	large := `{"description":"` + strings.Repeat("é", 5000) + `"}`
	const gives = `; retrieve_tools with the tool's name as query, limit 1 and detail "full" gives the whole)`
	for _, c := range []struct {
		p    *problem.Problem
		want string
	}{
		{problem.New(problem.NotFound, "None.", ""), "None."},
		{problem.New(problem.ToolLocked, "Locked.", "Ask.").With("status", "off"), "Locked.\nHint: Ask."},
		{problem.New(problem.ServerMismatch, "Marked.", "Use call_tool_destructive.").With("call_with", "call_tool_destructive"), "Marked.\nHint: Use call_tool_destructive."},
		{problem.New(problem.ServerMismatch, "Marked.", "").With("call_with", "call_tool_write"), "Marked.\nCall with: call_tool_write"},
		{problem.New(problem.ServerNotFound, "None.", "Look.").With("nearest", []string{"a", "b"}), "None.\nHint: Look.\nNearest names: a, b"},
		{problem.New(problem.ServerNotFound, "None, perhaps a or b.", "").With("nearest", []string{"a", "b"}), "None, perhaps a or b."},
		{problem.New(problem.ServerNotFound, "None.", "").With("nearest", []string{}), "None."},
		{problem.New(problem.InvalidParameter, "Wrong.", "").With("allowed", "an integer"), "Wrong.\nAllowed: an integer"},
		{problem.New(problem.InvalidParameter, "Wrong.", "").With("allowed", []bool{true, false}), "Wrong."},
		{problem.New(problem.UpstreamError, "Failed.", "").With("upstream_data", json.RawMessage("{\n \"a\": 1}")), "Failed.\nThe server's own data: {\"a\":1}"},
		{problem.New(problem.ArgsMismatch, "Wrong.", "Change.").With("inputSchema", json.RawMessage(" "+properties)), "Wrong.\nHint: Change.\nThe tool's inputSchema: " + properties},
		{problem.New(problem.ArgsMismatch, "Wrong.", "").With("inputSchema", json.RawMessage(nil)), "Wrong."},
		{problem.New(problem.ArgsMismatch, "Wrong.", "").With("inputSchema", json.RawMessage(large)),
			"Wrong.\nThe tool's inputSchema: " + large[:4096] + "… (the first 4096 of 10018 bytes" + gives},
	} {
		for _, modern := range []bool{false, true} {
			var got struct {
				Content           []struct{ Type, Text string }
				StructuredContent struct{ Error json.RawMessage }
				IsError           bool
			}
			if err := json.Unmarshal([]byte(whole(t, w.ToolErrorReply(modern, c.p))), &got); err != nil {
				t.Fatal(err)
			}
			if len(got.Content) != 1 || got.Content[0].Type != "text" || got.Content[0].Text != c.want || !got.IsError || len(got.StructuredContent.Error) == 0 {
				t.Errorf("got  %+v\nwant %s", got, c.want)
			}
		}
	}
}

// TestWarned checks that warnings are the last text of a result, and that its other content is unchanged.
func TestWarned(t *testing.T) {
	const block = `{"type":"text","text":"Warning: one\nWarning: \"two\""}`
	for raw, want := range map[string]string{
		`{"content":[{"type":"text", "text":"\u00e9"} ],"n":9007199254740993}`: `{"content":[{"type":"text", "text":"\u00e9"} ,` + block + `],"n":9007199254740993}`,
		`{"content":[ ],"isError":true}`:                                       `{"content":[ ` + block + `],"isError":true}`,
		`{"structuredContent":{"content":[]}}`:                                 `{"structuredContent":{"content":[]},"content":[` + block + `]}`,
		`{"content":"no array"}`:                                               `{"content":"no array"}`,
	} {
		if got := string(session.AppendWarnings(json.RawMessage(raw), []string{"one", `"two"`})); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", raw, got, want)
		}
		if got := string(session.AppendWarnings(json.RawMessage(raw), nil)); got != raw {
			t.Errorf("without a warning, %s is changed to %s", raw, got)
		}
	}
}
