package gateway

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"time"

	"mcpproxy/internal/jsonrpc"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/result"
	"mcpproxy/internal/store"
	"mcpproxy/internal/strictjson"
)

// handleLife is how long the whole of a cut result can be read.
const handleLife = 2 * time.Hour

// warningsKey is where warnings stand in a result's _meta.
const warningsKey = "mcpproxy/warnings"

// fit cuts a result to result_limit, keeping the whole of it for read_result,
// and adds the warnings.
func (g *Gateway) fit(ctx context.Context, c *call, out *CallResult) {
	if limit := c.cfg.ResultLimit; limit > 0 && len(out.Result) > limit {
		handle := rand.Text()
		err := g.Results.PutResult(ctx, store.StoredResult{
			Handle: handle, Actor: c.req.Caller.Actor.String(), Server: c.id.Server,
			Body: out.Result, Expires: time.Now().Add(handleLife),
		})
		if err != nil {
			// The part that fits is still worth having.
			g.Logger.Warn("a large result cannot be kept for read_result", "id", c.record.ID, "error", err)
			handle = ""
		}
		out.Result, _ = result.Cut(out.Result, limit, handle)
		out.Handle = handle
	}
	if len(out.Warnings) > 0 {
		out.Result = addWarnings(out.Result, out.Warnings)
		for _, w := range out.Warnings {
			g.Logger.Warn("call let through with a warning", "id", c.record.ID, "tool", c.id.String(), "warning", w)
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
	meta := json.RawMessage(strictjson.Find(raw, "_meta"))
	if strictjson.Kind(meta) != '{' {
		meta = json.RawMessage("{}")
	}
	return jsonrpc.SetMember(raw, "_meta", jsonrpc.SetMember(meta, warningsKey, list))
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
			return clipTo(block.Text, maxErrorText)
		}
	}
	return ""
}

// ReadResult gives a part of a result that was cut, as JSON. A handle works
// only for the actor that made the call, and not while its server is quarantined.
func (g *Gateway) ReadResult(ctx context.Context, req ReadRequest) (json.RawMessage, error) {
	stored, err := g.Results.GetResult(ctx, req.Handle)
	if err == nil && stored.Actor != req.Caller.Actor.String() {
		err = problem.New(problem.NotFound, "no such handle", "")
	}
	if err != nil {
		if p := problem.From(err); p.Code != problem.NotFound {
			return nil, p
		}
		return nil, problem.New(problem.NotFound, "There is no result with this handle.",
			"Handles live two hours and work only for the client that made the call; call the tool again.").
			With("handle", clip(req.Handle))
	}
	if s := g.Catalog.Current().Server(stored.Server); s != nil && s.Quarantined {
		return nil, problem.Newf(problem.ServerUnavailable, "Server '%s' is quarantined, so its results cannot be read", s.Name).
			WithHint("A person must review and approve the server.").With("server", s.Name)
	}
	part, err := result.Read(stored.Body, req.Path, req.Offset, req.Limit)
	if err != nil {
		return nil, err
	}
	return json.Marshal(part)
}
