package gate

import (
	"context"
	"fmt"
	"slices"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp/result"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store"
)

// insertResults returns the arguments with the results that they refer to. It runs after the checks that need no
// arguments, and before those that do. If it returns a problem, the arguments have the form of the record.
func (g *Gate) insertResults(ctx context.Context, c *call, s *resolvedCall) (callArguments, *problem.Problem) {
	named, refs := s.args.sent, slices.Clone(s.args.refs)
	if len(refs) > maxResultRefs {
		return s.args, invalidArgsProblem(fmt.Sprintf("they refer to %d results, but the limit is %d", len(refs), maxResultRefs), "args")
	}
	sensitivity, size := "", 0
	for i := range refs {
		h := &refs[i]
		stored, p := g.LoadStoredResult(ctx, &c.caller, h.handle)
		if p != nil && p.Code == problem.NotFound {
			p = problem.New(problem.ResultGone, "The stored result that an argument names does not exist.", p.Hint)
		}
		if p != nil {
			return s.args, p
		}
		h.origin = tool.ID{Server: stored.Server, Tool: stored.Tool}
		if stored.Server != s.request.ID.Server && s.request.CallTool == policy.CallToolRead {
			return s.args, problem.Newf(problem.ArgumentMismatch, "A result of server '%s' goes to another one, '%s': use call_tool_write or call_tool_destructive instead of call_tool_read",
				stored.Server, s.request.ID.Server).WithHint("A result of one server cannot go to another in the read lane.").With("word", resultKey)
		}
		var err error
		if h.value, err = result.ValueAt(stored.Body, h.path); err != nil {
			gone := *problem.From(err)
			gone.Code = problem.ResultGone
			return s.args, &gone
		}
		if size += len(h.value); size > maxResultRefBytes {
			return s.args, problem.Newf(problem.TooLarge, "The results in the arguments are larger than %d MB.", maxResultRefBytes>>20).WithHint("Use a part of them, by path.")
		}
		sensitivity = policy.StricterSensitivity(sensitivity, stored.Sensitivity)
	}
	args := s.args
	args.recorded = replaceResultRefs(named, refs, (*resultRef).toRecordJSON)
	sent := replaceResultRefs(named, refs, func(h *resultRef) []byte { return h.value })
	if err := wirejson.Check(sent, wirejson.Limits{Bytes: maxArguments + maxResultRefBytes}); err != nil {
		return args, invalidArgsProblem("with the result put in: "+err.Error(), "args")
	}
	args.sent, args.refs, args.sensitivity = sent, nil, sensitivity
	args.shown = func() []byte { return replaceResultRefs(named, refs, (*resultRef).toReviewJSON) }
	return args, nil
}

// LoadStoredResult returns a stored result to the actor that made the call. The tool must still be in the caller's
// scope, and its server must not be quarantined.
func (g *Gate) LoadStoredResult(ctx context.Context, c *auth.Caller, handle string) (store.StoredResult, *problem.Problem) {
	stored, err := g.Results.GetResult(ctx, handle)
	if err == nil && (stored.Actor != c.Actor.Principal() || !g.Catalog.Current().InScope(tool.ID{Server: stored.Server, Tool: stored.Tool}, c.Scope())) {
		err = problem.New(problem.NotFound, "no such handle", "")
	}
	if err != nil {
		if p := problem.From(err); p.Code != problem.NotFound {
			return stored, p
		}
		return stored, problem.New(problem.NotFound, "No result has this handle.",
			"A handle is valid for two hours, and only for the client that made the call. Call the tool again.").
			With("handle", problem.ClipName(handle))
	}
	if s := g.Catalog.Current().Server(stored.Server); s != nil && s.Quarantined {
		return stored, problem.Newf(problem.ServerUnavailable, "Server '%s' is quarantined, so its results cannot be read", s.Name).
			WithHint(policy.ServerQuarantined.Remedy()).With("server", s.Name)
	}
	return stored, nil
}
