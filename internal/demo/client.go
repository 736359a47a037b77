package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"mcpproxy/internal/mcp"
)

// demoClient is an MCP client of the daemon that plays the part of an AI agent.
type demoClient struct {
	url       string
	out       io.Writer
	sessionID string
	id        int
}

// foundTool is a tool in a result of retrieve_tools.
type foundTool struct {
	Name     string  `json:"name"`
	Score    float64 `json:"score"`
	CallWith string  `json:"call_with"`
}

// lockedTool is a tool in a result of retrieve_tools that exists but cannot be called.
type lockedTool struct {
	Server string `json:"server"`
	Name   string `json:"name"`
	Status string `json:"status"`
}

// toolResult is the part of a result that the demo shows.
type toolResult struct {
	Content []struct {
		Text string `json:"text"`
	} `json:"content"`
	IsError    bool `json:"isError"`
	Structured struct {
		Total    int          `json:"total"`
		Tools    []foundTool  `json:"tools"`
		Disabled []lockedTool `json:"disabled"`
	} `json:"structuredContent"`
}

func (r toolResult) firstText() string {
	if len(r.Content) == 0 {
		return ""
	}
	return strings.TrimSpace(r.Content[0].Text)
}

// runSession runs the demo's script: search, read, a rejected call, delete.
func (a *demoClient) runSession(ctx context.Context) error {
	if err := a.connect(ctx); err != nil {
		return err
	}
	if err := a.awaitTools(ctx, "notes:delete_note", "weather:get_forecast", "shifty:add_numbers"); err != nil {
		return err
	}
	steps := []struct {
		story, tool, args string
	}{
		{"The agent looks for a tool instead of loading all of them:", "retrieve_tools", `{"query":"which notes are there","limit":3}`},
		{"It reads, in the lane that a client allows without asking:", "call_tool_read", `{"name":"notes:list_notes"}`},
		{"", "call_tool_read", `{"name":"weather:get_forecast","args":{"city":"Lisbon","days":2}}`},
		{"", "call_tool_read", addNumbersCall},
		{"It writes, in the lane for which the client asks:", "call_tool_write", `{"name":"notes:write_note","args":{"title":"trip","text":"Lisbon on Friday"},"intent_reason":"the user asked for a reminder"}`},
		{"MCPProxy rejects a destructive tool in the read lane:", "call_tool_read", `{"name":"notes:delete_note","args":{"title":"old-draft"}}`},
		{"In the destructive lane, MCPProxy allows it:", "call_tool_destructive", `{"name":"notes:delete_note","args":{"title":"old-draft"},"intent_reason":"the user asked to clean up"}`},
	}
	for _, s := range steps {
		if s.story != "" {
			printLine(a.out, "\n%s", s.story)
		}
		printLine(a.out, "  → %s %s", s.tool, s.args)
		r, err := a.callTool(ctx, s.tool, s.args)
		if err != nil {
			return err
		}
		a.printResult(r)
	}
	return nil
}

func (a *demoClient) printResult(r toolResult) {
	mark := "←"
	if r.IsError {
		mark = "✗"
	}
	if len(r.Structured.Tools) > 0 {
		for _, t := range r.Structured.Tools {
			printLine(a.out, "  %s %-22s %-21s score %.2f", mark, t.Name, t.CallWith, t.Score)
		}
		return
	}
	for i, line := range strings.Split(r.firstText(), "\n") {
		if i > 0 {
			mark = " "
		}
		printLine(a.out, "  %s %s", mark, line)
	}
}

// connect opens a session of protocol revision 2025-11-25.
func (a *demoClient) connect(ctx context.Context) error {
	_, err := a.sendRequest(ctx, mcp.Initialize, `{"protocolVersion":"`+mcp.Legacy+`","capabilities":{},"clientInfo":{"name":"demo-agent","version":"1.0.0"}}`)
	if err != nil {
		return err
	}
	_, err = a.postMessage(ctx, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return err
}

// connectTimeout limits how long the sample servers have to connect.
const connectTimeout = 20 * time.Second

// pollUntil calls there at intervals until it returns true or an error.
func pollUntil(ctx context.Context, every time.Duration, there func() (bool, error)) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if ok, err := there(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// awaitTools waits until the named tools can be found.
func (a *demoClient) awaitTools(ctx context.Context, names ...string) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	for _, name := range names {
		err := pollUntil(ctx, 20*time.Millisecond, func() (bool, error) {
			r, err := a.callTool(ctx, "retrieve_tools", fmt.Sprintf(`{"query":%q,"limit":1}`, name))
			return err == nil && len(r.Structured.Tools) > 0 && r.Structured.Tools[0].Name == name, err
		})
		if err != nil {
			return fmt.Errorf("%s did not appear: %w", name, err)
		}
	}
	return nil
}

// addNumbersCall is a call of the tool that shifty changes.
const addNumbersCall = `{"name":"shifty:add_numbers","args":{"a":1,"b":2}}`

// watchShifty waits until the changed tool of shifty is held for review, and shows that a call to the tool is now
// rejected.
func (a *demoClient) watchShifty(ctx context.Context, every time.Duration) error {
	if err := pollUntil(ctx, every, func() (bool, error) {
		r, err := a.callTool(ctx, "retrieve_tools", `{"query":"shifty:add_numbers","limit":1,"include_disabled":true}`)
		return slices.Contains(r.Structured.Disabled, lockedTool{"shifty", "shifty:add_numbers", "pending_approval"}), err
	}); err != nil {
		return err
	}
	printLine(a.out, "\nshifty has changed the description and hints of its tool. A changed tool waits for approval:\n  → call_tool_read %s", addNumbersCall)
	r, err := a.callTool(ctx, "call_tool_read", addNumbersCall)
	if err != nil {
		return err
	}
	a.printResult(r)
	return nil
}

// callTool calls a built-in tool.
func (a *demoClient) callTool(ctx context.Context, tool, args string) (toolResult, error) {
	raw, err := a.sendRequest(ctx, mcp.CallTool, fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, args))
	if err != nil {
		return toolResult{}, err
	}
	var r toolResult
	err = json.Unmarshal(raw, &r)
	return r, err
}

// sendRequest sends a request and returns its result.
func (a *demoClient) sendRequest(ctx context.Context, method, params string) (json.RawMessage, error) {
	a.id++
	body, err := a.postMessage(ctx, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, a.id, method, params))
	if err != nil {
		return nil, err
	}
	var m struct {
		Result json.RawMessage
		Error  *struct{ Message string }
	}
	if err := json.Unmarshal(body, &m); err != nil {
		return nil, fmt.Errorf("%s: %w in %.200s", method, err, body)
	}
	if m.Error != nil {
		return nil, fmt.Errorf("%s: %s", method, m.Error.Message)
	}
	return m.Result, nil
}

func (a *demoClient) postMessage(ctx context.Context, message string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url, bytes.NewReader([]byte(message)))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	// Without event streams, the response is one JSON text. This client supports nothing else.
	req.Header.Set("Accept", "application/json")
	if a.sessionID != "" {
		req.Header.Set(mcp.HeaderSession, a.sessionID)
		req.Header.Set(mcp.HeaderVersion, mcp.Legacy)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if id := resp.Header.Get(mcp.HeaderSession); id != "" {
		a.sessionID = id
	}
	return io.ReadAll(resp.Body)
}

func printLine(out io.Writer, format string, args ...any) {
	fmt.Fprintf(out, format+"\n", args...)
}
