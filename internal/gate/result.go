package gate

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"time"

	"mcpproxy/internal/mcp/result"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store"
	"mcpproxy/internal/store/activity"
)

// warningsKey is where warnings stand in a result's _meta.
const warningsKey = "mcpproxy/warnings"

// fit puts the result into what the caller gets: what is selected of it, cut to
// result_limit, with the whole kept for read_result, and with the warnings.
func (g *Gate) fit(ctx context.Context, c *call, whole json.RawMessage, o *activity.Outcome) {
	c.result = g.selected(ctx, c, whole, o)
	if limit := c.cfg.ResultLimit; limit > 0 && len(c.result) > limit {
		handle := g.kept(ctx, c, rand.Text(), c.result)
		c.result, _ = result.Cut(c.result, limit, handle)
		c.handle = handle
	}
	if warnings := append(c.decision.Warnings, o.Warnings...); len(warnings) > 0 {
		c.result, c.decision.Warnings = addWarnings(c.result, warnings), warnings
		for _, w := range warnings {
			g.Logger.Warn("call let through with a warning", "id", c.record.ID, "tool", c.policyRequest.ID.String(), "warning", w)
		}
	}
}

// selected is what is selected of a result, and the result itself where nothing can be. A
// failure of the tool is never selected from.
func (g *Gate) selected(ctx context.Context, c *call, whole json.RawMessage, o *activity.Outcome) json.RawMessage {
	e := c.selection
	if e == nil {
		e = c.cfg.Selection(c.policyRequest.ID)
	}
	if e == nil || e.Same() || c.isError {
		return whole
	}
	handle := rand.Text()
	part, err := result.Select(whole, e, handle)
	if err != nil {
		o.Warnings = append(o.Warnings, "The selection could not be made, so this is the whole result: "+err.Error()+".")
		return whole
	}
	if g.kept(ctx, c, handle, whole) == "" {
		part, _ = result.Select(whole, e, "")
	}
	return part
}

// kept keeps a result for read_result, and returns its handle; "" when it cannot.
func (g *Gate) kept(ctx context.Context, c *call, handle string, body json.RawMessage) string {
	err := g.Results.PutResult(ctx, store.StoredResult{
		Handle: handle, Actor: c.caller.Actor.Principal(), Server: c.policyRequest.ID.Server, Tool: c.policyRequest.ID.Tool,
		Sensitivity: c.decision.Intent.Sensitivity, Body: body, Expires: time.Now().Add(store.ResultLife),
	})
	if err != nil {
		// The part that fits is still worth having.
		g.Logger.Warn("a large result cannot be kept for read_result", "id", c.record.ID, "error", err)
		return ""
	}
	return handle
}

// addWarnings puts the warnings into the result's _meta and keeps everything
// else of it.
func addWarnings(raw json.RawMessage, warnings []string) json.RawMessage {
	list, err := json.Marshal(warnings)
	if err != nil {
		return raw // strings always encode
	}
	meta := json.RawMessage(wirejson.Find(raw, "_meta"))
	if wirejson.Kind(meta) != '{' {
		meta = json.RawMessage("{}")
	}
	return wirejson.SetMember(raw, "_meta", wirejson.SetMember(meta, warningsKey, list))
}

// maxErrorText bounds the message that a record takes from a failed result.
const maxErrorText = 500

// firstText is the beginning of the first text block of a result, for the
// record's error message.
func firstText(raw json.RawMessage) string {
	var r struct {
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
	}
	if json.Unmarshal(raw, &r) != nil {
		return ""
	}
	for _, block := range r.Content {
		if block.Text != "" {
			return problem.Shown(block.Text, maxErrorText)
		}
	}
	return ""
}
