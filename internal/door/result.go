package door

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"time"

	"mcpproxy/internal/problem"
	"mcpproxy/internal/rawjson"
	"mcpproxy/internal/result"
	"mcpproxy/internal/store"
)

// warningsKey is where warnings stand in a result's _meta.
const warningsKey = "mcpproxy/warnings"

// fit puts the result into what the caller gets: cut to result_limit, with the
// whole of it kept for read_result, and with the warnings.
func (d *Door) fit(ctx context.Context, c *call, whole json.RawMessage) {
	c.result = whole
	if limit := c.cfg.ResultLimit; limit > 0 && len(whole) > limit {
		handle := rand.Text()
		err := d.Results.PutResult(ctx, store.StoredResult{
			Handle: handle, Actor: c.caller.Actor.Principal(), Server: c.asked.ID.Server, Tool: c.asked.ID.Tool,
			Body: whole, Expires: time.Now().Add(store.ResultLife),
		})
		if err != nil {
			// The part that fits is still worth having.
			d.Logger.Warn("a large result cannot be kept for read_result", "id", c.record.ID, "error", err)
			handle = ""
		}
		c.result, _ = result.Cut(whole, limit, handle)
		c.handle = handle
	}
	if len(c.decision.Warnings) > 0 {
		c.result = addWarnings(c.result, c.decision.Warnings)
		for _, w := range c.decision.Warnings {
			d.Logger.Warn("call let through with a warning", "id", c.record.ID, "tool", c.asked.ID.String(), "warning", w)
		}
	}
}

// addWarnings puts the warnings into the result's _meta and keeps everything
// else of it.
func addWarnings(raw json.RawMessage, warnings []string) json.RawMessage {
	list, err := json.Marshal(warnings)
	if err != nil {
		return raw // strings always encode
	}
	meta := json.RawMessage(rawjson.Find(raw, "_meta"))
	if rawjson.Kind(meta) != '{' {
		meta = json.RawMessage("{}")
	}
	return rawjson.SetMember(raw, "_meta", rawjson.SetMember(meta, warningsKey, list))
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
