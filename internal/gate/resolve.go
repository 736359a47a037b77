package gate

import (
	"context"
	"encoding/json"
	"strings"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
)

// resolvedCall is the input of a decision: the tool and the arguments of a call, and the configuration.
type resolvedCall struct {
	cfg     *config.Config
	tool    *catalog.Tool // nil if there is no such tool
	request policy.CallRequest
	args    callArguments
}

// callArguments are the arguments of a call. If they name results of earlier calls, insertResults
// returns the arguments that are sent.
type callArguments struct {
	sent        json.RawMessage
	refs        []resultRef     // results that have yet to be inserted
	recorded    json.RawMessage // as recorded; nil: as they are sent
	shown       func() []byte   // as a reviewer sees them; nil: as they are sent
	sensitivity string          // sensitivity of the inserted results
	unknown     bool            // a dry run without arguments
}

// resolveLaneCall converts a lane call. It returns the call, its tool and arguments, and the snapshot to decide on.
func (g *Gate) resolveLaneCall(r *LaneCall) (call, resolvedCall, *catalog.Snapshot) {
	c := call{callOptions: callOptions{DeclaresIntent: true, ValidatesArguments: true, CutsResult: !r.Whole},
		caller: r.Caller, stateless: r.Caller.SessionID == "", limit: r.Timeout, unknown: r.Unknown, client: r.Client, say: r.Say, meta: r.Meta, size: r.RequestBytes}
	s := resolvedCall{cfg: g.Config(), request: policy.CallRequest{CallTool: r.CallTool, Declared: r.Declared}}
	now := g.Catalog.Current()
	if s.findTool(now, r.Name, c.caller.Scope()); s.tool == nil {
		s.findTool(now, trimNameParts(r.Name), c.caller.Scope())
	}
	c.selection, s.request.SelectErr = policy.ParseSelectParameter(r.Select)
	s.args.sent, s.request.ArgsErr = chooseArgsOrArgsJSON(r.Args, r.ArgsJSON)
	if r.ResultRefs && s.request.ArgsErr == nil {
		if s.args.refs = findResultRefs(s.args.sent); s.args.refs != nil {
			s.args.recorded = replaceResultRefs(s.args.sent, s.args.refs, (*resultRef).toRecordJSON)
		}
	}
	return c, s, now
}

// findTool sets the tool with the name server:tool or server:alias, for a caller with this scope.
func (s *resolvedCall) findTool(now *catalog.Snapshot, name string, within policy.Scope) {
	s.request.Name = name
	s.request.ID, s.request.NameErr = tool.ParseID(name)
	if s.tool = now.Resolve(s.request.ID, within); s.tool != nil && s.tool.ID != s.request.ID {
		s.request.ID, s.request.Alias = s.tool.ID, s.request.ID.String()
	}
}

// trimNameParts returns the name of a tool without spaces around its parts.
func trimNameParts(name string) string {
	server, own, ok := strings.Cut(name, ":")
	if !ok {
		return strings.TrimSpace(name)
	}
	return strings.TrimSpace(server) + ":" + strings.TrimSpace(own)
}

// withSnapshot returns the call with another configuration and with the tool in the snapshot.
func (s resolvedCall) withSnapshot(cfg *config.Config, now *catalog.Snapshot) resolvedCall {
	s.cfg, s.tool = cfg, now.Tool(s.request.ID)
	if !s.request.ChoosesLane() && s.tool != nil {
		s.request.CallTool = s.tool.CallWith
	}
	return s
}

// resolveClientCall is resolveLaneCall for a client's own tools/call. Its lane is the lane of the endpoint, or else
// the one that the tool's hints require.
func (g *Gate) resolveClientCall(ctx context.Context, n *ToolCallTarget, r *session.Request) (call, resolvedCall, *catalog.Snapshot) {
	c := call{caller: *r.Caller, stateless: r.Caller.SessionID == "", client: r, say: r.Say, size: r.Size}
	if c.params = r.Params; c.stateless {
		c.params, c.returned = g.extractReturnedAnswer(ctx, r.Params)
	}
	s := resolvedCall{cfg: g.Config(), request: policy.CallRequest{OwnNames: true, CallTool: policy.CallToolDestructive, Name: n.Name, NameErr: n.Err}}
	if n.Lane != policy.CallToolNone {
		c.ValidatesArguments = true
		s.request.CallTool, s.request.LaneAddress = n.Lane, laneAddress(&c.caller)
		s.request.Declared = policy.DeclaredIntent{Present: true, HasOperation: true, OperationType: n.Lane.Operation().String()}
	}
	if n.Err == nil {
		s.request.Name, s.request.Alias = n.ID.String(), n.Alias
		s.request.ID, s.request.NameErr = tool.ParseID(s.request.Name)
	}
	s.args.sent, s.request.ArgsErr = parseArgumentsObject("arguments", wirejson.Find(r.Params, "arguments"))
	now := g.Catalog.Current()
	return c, s.withSnapshot(s.cfg, now), now
}

// laneAddress returns the address to which the lane endpoints are relative, for a caller.
func laneAddress(c *auth.Caller) string {
	if profile := c.Scope().ProfileNames(); profile != "" {
		return "/mcp/p/" + profile + "/all"
	}
	return "/mcp/all"
}
