package mcpserver

import (
	"context"
	"encoding/json"
	"strings"

	"mcpproxy/internal/catalog/search"
	"mcpproxy/internal/config"
	"mcpproxy/internal/gate"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
)

// run executes a built-in tool.
func (q *builtinRequest) run(ctx context.Context) session.Reply {
	q.read()
	name, ok := wirejson.String(q.name)
	if !ok {
		return q.invalid(ctx, "params.name must be a string: the tool to call")
	}
	switch wirejson.Kind(q.args) {
	case '{':
	case 'n':
		q.args = noArguments
	default:
		if q.args != nil {
			return q.invalid(ctx, "params.arguments must be an object")
		}
		q.args = noArguments
	}
	if v, ok := policy.ParseVariant(name); ok {
		return q.callVariant(ctx, v)
	}
	switch {
	case name == toolRetrieve:
		return q.retrieveTools(ctx)
	case name == toolReadResult:
		return q.readResult(ctx)
	case name == toolUpstreamServers && hasManagement(q.cfg):
		return q.upstreamServers(ctx)
	}
	unknown := q.unknownTool(name)
	q.record(ctx, problem.New(problem.ToolNotFound, unknown, ""))
	return session.Reply{Error: session.InvalidRequest(unknown)}
}

var noArguments = []byte("{}") // never modified

// retrieveTools searches for tools.
func (q *builtinRequest) retrieveTools(ctx context.Context) session.Reply {
	r := ops.RetrieveRequest{Caller: *q.Caller, UsageSeen: q.told}
	a := arguments{tool: toolRetrieve, raw: q.args}
	r.Query = a.optional("query") // without a query the answer explains what to do
	r.Limit = a.clamped("limit", 1, 100)
	r.Operation, _ = policy.ParseOperation(a.oneOf("operation_type", "read", "write", "destructive"))
	r.Detail = config.Detail(a.oneOf("detail", string(config.Auto), string(config.Full), string(config.Compact)))
	r.IncludeDisabled = a.flag("include_disabled")
	if a.bad != nil {
		return q.refuse(ctx, a.bad)
	}
	found, err := q.gateway.RetrieveTools(ctx, r)
	return q.answered(ctx, found, err)
}

// readResult returns the next part of a large result.
func (q *builtinRequest) readResult(ctx context.Context) session.Reply {
	r := ops.ReadResultRequest{Caller: *q.Caller}
	a := arguments{tool: toolReadResult, raw: q.args}
	r.Handle = a.text("handle", "the handle that the cut result names")
	r.Path = a.optional("path")
	r.Offset = a.atLeast("offset", 0)
	r.Limit = a.atLeast("limit", 1)
	r.Select = a.optional("select")
	if a.bad != nil {
		return q.refuse(ctx, a.bad)
	}
	part, err := q.gateway.ReadResult(ctx, r)
	return q.answered(ctx, part, err)
}

// answered returns the result of a built-in tool.
func (q *builtinRequest) answered(ctx context.Context, raw json.RawMessage, err error) session.Reply {
	if err != nil {
		return q.refuse(ctx, err)
	}
	return q.reply.Tool(q.modern, raw)
}

// callVariant calls a tool of a server.
func (q *builtinRequest) callVariant(ctx context.Context, v policy.Variant) session.Reply {
	r := gate.Request{Variant: v, Hands: true, Caller: *q.Caller, Say: notices(q.Say, q.modern), Client: q.Request, RequestBytes: q.Size}
	if q.Meta != nil {
		r.Meta = q.Meta.Rest
	}
	readCall(q.args, &r)
	res, err := q.gateway.Call(ctx, r)
	if err != nil {
		return q.reply.Refusal(q.modern, err)
	}
	if wirejson.Kind(res.Result) != '{' {
		return q.reply.Refusal(q.modern, problem.New(problem.UpstreamError, "The server's result is not an object.",
			"This is a fault of the server: try another tool, or report it to the server's author."))
	}
	return q.reply.Forward(q.modern, session.WithWarnings(res.Result, res.Warnings))
}

// notices returns the function that forwards notifications to the stream of a call; nil if there is none.
func notices(say func(session.Event), modern bool) func(session.Event) {
	if say == nil {
		return nil
	}
	return func(e session.Event) {
		// In the modern protocol log messages need a capability that this surface does not declare.
		if e.Method == mcp.Progress || e.Method == mcp.LogMessage && !modern {
			say(session.Event{Method: e.Method, Params: e.Params})
		}
	}
}

// maxUnknown limits the unknown parameters that are forwarded.
const maxUnknown = 64

// readCall reads the arguments of a call tool. Invalid ones are passed on as JSON text, so that the
// refusal is recorded like any other. Null counts as missing.
func readCall(args []byte, r *gate.Request) {
	_ = wirejson.Members(args, func(name, value []byte) error {
		if wirejson.Kind(value) == 'n' {
			return nil
		}
		switch string(name) {
		case "name":
			var ok bool
			if r.Name, ok = wirejson.String(value); !ok {
				r.Name = wirejson.Clip(string(value), session.MaxIdentity)
			}
		case "args":
			r.Args = value
		case "args_json":
			r.ArgsJSON = value
		case "select":
			r.Select = value
		default:
			if !r.Declared.Add(string(name), value) && len(r.Unknown) < maxUnknown {
				r.Unknown = append(r.Unknown, gate.UnknownArgument{Name: string(name), Value: value})
			}
		}
		return nil
	})
}

// unknownTool returns the message for an unknown tool.
func (q *builtinRequest) unknownTool(name string) string {
	message := "Unknown tool: " + session.QuoteText(name) + "."
	switch nearest := q.nearest(name); {
	case name == "call_tool":
		message = policy.NoCallTool
	case strings.Contains(name, ":"):
		message += " Tools of the connected servers are called through call_tool_read, call_tool_write or call_tool_destructive, with their name as the parameter name."
	case nearest != "":
		message += " Did you mean '" + nearest + "'?"
	default:
		message += " Find tools with retrieve_tools and call them with call_tool_read, call_tool_write or call_tool_destructive."
	}
	return message
}

func (q *builtinRequest) nearest(name string) string {
	known := []string{toolRetrieve, toolReadResult}
	for _, v := range variants {
		known = append(known, policy.VariantOf(v.operation).String())
	}
	if hasManagement(q.cfg) {
		known = append(known, toolUpstreamServers)
	}
	return search.ClosestName(name, known)
}
