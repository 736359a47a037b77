package gateway

import (
	"context"
	"encoding/json"

	"mcpproxy/internal/policy"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/result"
	"mcpproxy/internal/tool"
)

// ReadResult returns a part of a result that was cut, as JSON. A handle works
// only for the actor that made the call, as far as the tool is still in the scope, and
// not while its server is quarantined.
func (g *Gateway) ReadResult(ctx context.Context, req ReadRequest) (json.RawMessage, error) {
	stored, err := g.Results.GetResult(ctx, req.Handle)
	if err == nil && (stored.Actor != req.Caller.Actor.Principal() || !g.Catalog.Current().InScope(tool.ID{Server: stored.Server, Tool: stored.Tool}, req.Caller.Scope())) {
		err = problem.New(problem.NotFound, "no such handle", "")
	}
	if err != nil {
		if p := problem.From(err); p.Code != problem.NotFound {
			return nil, p
		}
		return nil, problem.New(problem.NotFound, "There is no result with this handle.",
			"Handles live two hours and work only for the client that made the call; call the tool again.").
			With("handle", problem.Brief(req.Handle))
	}
	if s := g.Catalog.Current().Server(stored.Server); s != nil && s.Quarantined {
		return nil, problem.Newf(problem.ServerUnavailable, "Server '%s' is quarantined, so its results cannot be read", s.Name).
			WithHint(policy.ServerQuarantined.Remedy()).With("server", s.Name)
	}
	part, err := result.Read(stored.Body, result.From{Handle: req.Handle, Path: req.Path, Offset: req.Offset, Limit: req.Limit})
	if err != nil {
		return nil, err
	}
	return json.Marshal(part)
}
