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

// fit makes the result what the caller gets: what is selected of it, cut to result_limit, with the
// whole kept for read_result, and with the warnings.
func (g *Gate) fit(ctx context.Context, c *call, v *verdict, r *Result, o *activity.Outcome) {
	r.Result = g.selected(ctx, c, v, r, o)
	if limit := v.cfg.ResultLimit; limit > 0 && len(r.Result) > limit {
		r.Handle = g.kept(ctx, c, v, r.ActivityID, rand.Text(), r.Result)
		r.Result, _ = result.Cut(r.Result, limit, r.Handle)
	}
	r.Warnings = v.Warnings
	if warnings := append(v.Warnings, o.Warnings...); len(warnings) > 0 {
		r.Result, r.Warnings = addWarnings(r.Result, warnings), warnings
		for _, w := range warnings {
			g.Logger.Warn("call let through with a warning", "id", r.ActivityID, "tool", v.request.ID.String(), "warning", w)
		}
	}
}

// selected is what is selected of a result, and the result itself where nothing can be. A
// failure of the tool is never selected from.
func (g *Gate) selected(ctx context.Context, c *call, v *verdict, r *Result, o *activity.Outcome) json.RawMessage {
	e, whole := c.selection, r.Result
	if e == nil {
		e = v.cfg.Selection(v.request.ID)
	}
	if e == nil || e.Same() || r.IsError {
		return whole
	}
	handle := rand.Text()
	part, err := result.Select(whole, e, handle)
	if err != nil {
		o.Warnings = append(o.Warnings, "The selection could not be made, so this is the whole result: "+err.Error()+".")
		return whole
	}
	if g.kept(ctx, c, v, r.ActivityID, handle, whole) == "" {
		part, _ = result.Select(whole, e, "")
	}
	return part
}

// kept keeps a result for read_result, and returns its handle; "" when it cannot.
func (g *Gate) kept(ctx context.Context, c *call, v *verdict, record, handle string, body json.RawMessage) string {
	err := g.Results.PutResult(ctx, store.StoredResult{
		Handle: handle, Actor: c.caller.Actor.Principal(), Server: v.request.ID.Server, Tool: v.request.ID.Tool,
		Sensitivity: v.Intent.Sensitivity, Body: body, Expires: time.Now().Add(store.ResultLife),
	})
	if err != nil {
		// The part that fits is still worth having.
		g.Logger.Warn("a large result cannot be kept for read_result", "id", record, "error", err)
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
