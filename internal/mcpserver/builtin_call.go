package mcpserver

import (
	"context"
	"encoding/json"
	"strings"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/catalog/search"
	"mcpproxy/internal/config"
	"mcpproxy/internal/gate"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/result"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
)

// runTool executes a built-in tool.
func (q *builtinToolCall) runTool(ctx context.Context) session.Reply {
	q.parseParams()
	name, ok := wirejson.String(q.name)
	if !ok {
		return q.invalidCallReply(ctx, "params.name must be a string: the tool to call")
	}
	switch wirejson.Kind(q.args) {
	case '{':
	case 'n':
		q.args = noArguments
	default:
		if q.args != nil {
			return q.invalidCallReply(ctx, "params.arguments must be an object")
		}
		q.args = noArguments
	}
	if v, ok := policy.ParseCallToolName(name); ok {
		return q.callServerTool(ctx, v)
	}
	switch {
	case name == toolRetrieve:
		return q.runRetrieveTools(ctx)
	case name == toolReadResult:
		return q.runReadResult(ctx)
	case name == toolUpstreamServers && listsUpstreamServers(q.cfg):
		return q.runUpstreamServers(ctx)
	}
	if q.showsApps(q.Request) {
		if t := q.AppSurface.AppTool(q.Request, name); t != nil {
			return q.callFromApp(ctx, t)
		}
	}
	unknown := q.unknownToolMessage(name)
	q.recordRefusal(ctx, problem.New(problem.ToolNotFound, unknown, ""))
	return session.Reply{Error: session.InvalidParamsErrorWithMessage(unknown)}
}

var noArguments = []byte("{}") // never modified

// runRetrieveTools searches for tools.
func (q *builtinToolCall) runRetrieveTools(ctx context.Context) session.Reply {
	r := ops.RetrieveRequest{Caller: *q.Caller, UsageSeen: q.told}
	a := toolArguments{tool: toolRetrieve, raw: q.args}
	r.Query = a.optionalText("query") // without a query the answer explains what to do
	r.Limit = a.clampedInt("limit", 1, 100)
	r.Operation, _ = policy.ParseOperation(a.optionalWord("operation_type", "read", "write", "destructive"))
	r.Detail = config.ToolDetailLevel(a.optionalWord("detail", string(config.Auto), string(config.Full), string(config.Compact)))
	r.IncludeDisabled = a.optionalBool("include_disabled")
	if a.bad != nil {
		return q.refusalReply(ctx, a.bad)
	}
	found, err := q.gateway.RetrieveTools(ctx, r)
	return q.toolReply(ctx, found, err)
}

// runReadResult returns the next part of a large result.
func (q *builtinToolCall) runReadResult(ctx context.Context) session.Reply {
	r := ops.ReadResultRequest{Caller: *q.Caller}
	a := toolArguments{tool: toolReadResult, raw: q.args}
	r.Handle = a.requiredText("handle", "the handle that the cut result names")
	r.Path = a.optionalText("path")
	r.Offset = a.intAtLeast("offset", 0)
	r.Limit = a.intAtLeast("limit", 1)
	r.Select = a.optionalText("select")
	if a.bad != nil {
		return q.refusalReply(ctx, a.bad)
	}
	part, err := q.gateway.ReadResult(ctx, r)
	return q.toolReply(ctx, part, err)
}

// toolReply returns the result of a built-in tool.
func (q *builtinToolCall) toolReply(ctx context.Context, raw json.RawMessage, err error) session.Reply {
	if err != nil {
		return q.refusalReply(ctx, err)
	}
	return q.reply.BuiltInToolReply(q.modern, raw)
}

// callServerTool calls a tool of a server.
func (q *builtinToolCall) callServerTool(ctx context.Context, v policy.CallToolVariant) session.Reply {
	r := q.newLaneCall(v)
	r.ResultRefs = true
	parseCallArguments(q.args, &r)
	return q.forwardCall(ctx, r)
}

// callFromApp calls a tool for a user interface, in the lane of the tool's hints.
func (q *builtinToolCall) callFromApp(ctx context.Context, t *catalog.Tool) session.Reply {
	r := q.newLaneCall(t.CallWith)
	r.Name, r.Args, r.Whole = t.ID.String(), q.args, true
	return q.forwardCall(ctx, r)
}

// newLaneCall returns a call without a tool and arguments.
func (q *builtinToolCall) newLaneCall(v policy.CallToolVariant) gate.LaneCall {
	r := gate.LaneCall{CallTool: v, Caller: *q.Caller, Say: newNotificationFilter(q.Say, q.modern), Client: q.Request, RequestBytes: q.Size}
	if q.Meta != nil {
		r.Meta = q.Meta.Rest
	}
	return r
}

// forwardCall runs a call and returns the server's result.
func (q *builtinToolCall) forwardCall(ctx context.Context, r gate.LaneCall) session.Reply {
	res, err := q.gateway.Call(ctx, r)
	if err != nil {
		return q.reply.ToolErrorReply(q.modern, err)
	}
	if wirejson.Kind(res.Result) != '{' {
		return q.reply.ToolErrorReply(q.modern, problem.New(problem.UpstreamError, "The server's result is not an object.",
			"This is a fault of the server: try another tool, or report it to the server's author."))
	}
	switch {
	case !q.showsApps(q.Request):
	case r.Whole:
		res.Result = q.AppSurface.NameApps(q.Request, res.Tool, res.Result)
	default:
		res.Result = q.AppSurface.AddApp(q.Request, res.Tool, res.Result)
	}
	return q.reply.NewForwardedReply(q.modern, session.AppendWarnings(result.StrictForm(res.Result, q.modern), res.Warnings))
}

// newNotificationFilter returns the function that forwards notifications to the stream of a call; nil if there is none.
func newNotificationFilter(say func(session.Event), modern bool) func(session.Event) {
	if say == nil {
		return nil
	}
	return func(e session.Event) {
		// In the modern protocol log messages need a capability that this endpoint does not declare.
		if e.Method == mcp.Progress || e.Method == mcp.LogMessage && !modern {
			say(session.Event{Method: e.Method, Params: e.Params})
		}
	}
}

// maxUnknown limits the unknown parameters that are forwarded.
const maxUnknown = 64

// parseCallArguments reads the arguments of a call tool. Invalid ones are passed on as JSON text, so that the
// refusal is recorded like any other. Null counts as missing.
func parseCallArguments(args []byte, r *gate.LaneCall) {
	_ = wirejson.EachMember(args, func(name, value []byte) error {
		if wirejson.Kind(value) == 'n' {
			return nil
		}
		switch string(name) {
		case "name":
			var ok bool
			if r.Name, ok = wirejson.String(value); !ok {
				r.Name = wirejson.ClipText(string(value), session.MaxIdentity)
			}
		case "args":
			r.Args = value
		case "args_json":
			r.ArgsJSON = value
		case "select":
			r.Select = value
		default:
			if !r.Declared.AddParameter(string(name), value) && len(r.Unknown) < maxUnknown {
				r.Unknown = append(r.Unknown, gate.UnknownArgument{Name: string(name), Value: value})
			}
		}
		return nil
	})
}

// unknownToolMessage returns the message for an unknown tool.
func (q *builtinToolCall) unknownToolMessage(name string) string {
	message := "Unknown tool: " + session.QuoteClipped(name) + "."
	switch nearest := q.nearestToolName(name); {
	case name == "call_tool":
		message = policy.CallToolNotFoundText
	case strings.Contains(name, ":"):
		message += " Tools of the connected servers are called through call_tool_read, call_tool_write or call_tool_destructive, with their name as the parameter name."
	case nearest != "":
		message += " Did you mean '" + nearest + "'?"
	default:
		message += " Find tools with retrieve_tools and call them with call_tool_read, call_tool_write or call_tool_destructive."
	}
	return message
}

func (q *builtinToolCall) nearestToolName(name string) string {
	known := []string{toolRetrieve, toolReadResult}
	for _, v := range variants {
		known = append(known, policy.CallToolForOperation(v.operation).String())
	}
	if listsUpstreamServers(q.cfg) {
		known = append(known, toolUpstreamServers)
	}
	return search.ClosestName(name, known)
}
