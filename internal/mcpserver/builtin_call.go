package mcpserver

import (
	"context"
	"encoding/json"
	"strings"

	"mcpproxy/internal/catalog/search"
	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
)

// run runs a built-in tool.
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
	case name == toolUpstreamServers && manages(q.cfg):
		return q.upstreamServers(ctx)
	}
	unknown := q.unknownTool(name)
	q.record(ctx, problem.New(problem.ToolNotFound, unknown, ""))
	return session.Reply{Error: session.InvalidRequest(unknown)}
}

var noArguments = []byte("{}") // never written to

// toolRetrieve finds tools.
func (q *builtinRequest) retrieveTools(ctx context.Context) session.Reply {
	r := ops.RetrieveRequest{Caller: *q.Caller, Told: q.told}
	a := arguments{tool: toolRetrieve, raw: q.args}
	r.Query = a.optional("query") // the answer says what to do without one
	r.Limit = a.clamped("limit", 1, 100)
	r.Operation, _ = policy.ParseOperation(a.oneOf("operation_type", "read", "write", "destructive"))
	r.Detail = config.Detail(a.oneOf("detail", string(config.Auto), string(config.Full), string(config.Compact)))
	r.IncludeDisabled = a.flag("include_disabled")
	if a.bad != nil {
		return q.refuse(ctx, a.bad)
	}
	found, err := q.gateway.Retrieve(ctx, r)
	return q.answered(ctx, found, err)
}

// toolReadResult returns the next part of a large result.
func (q *builtinRequest) readResult(ctx context.Context) session.Reply {
	r := ops.ReadRequest{Caller: *q.Caller}
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

// answered is the result of a built-in tool.
func (q *builtinRequest) answered(ctx context.Context, raw json.RawMessage, err error) session.Reply {
	if err != nil {
		return q.refuse(ctx, err)
	}
	return q.reply.Tool(q.modern, raw)
}

// callVariant calls an upstream's tool.
func (q *builtinRequest) callVariant(ctx context.Context, v policy.Variant) session.Reply {
	r := ops.CallRequest{Variant: v, Hands: true, Caller: *q.Caller, Notify: notices(q.Say, q.modern), Client: q.Request, RequestBytes: q.Size}
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
	return q.reply.Passed(q.modern, session.Warned(res.Result, res.Warnings))
}

// notices returns what hands on the notifications that belong on the stream of a
// call; nil when nobody wants them.
func notices(say func(session.Event), modern bool) func(method string, params json.RawMessage) {
	if say == nil {
		return nil
	}
	return func(method string, params json.RawMessage) {
		// In the modern era log messages need a capability that this surface
		// does not have.
		if method == mcp.Progress || method == mcp.LogMessage && !modern {
			say(session.Event{Method: method, Params: params})
		}
	}
}

// maxStrays bounds the parameters that no calling tool has and that are handed on.
const maxStrays = 64

// readCall reads the arguments of a calling tool. What cannot be read goes to
// the gateway as its JSON text, so that the refusal is on record like any other.
// An explicit null counts as not given.
func readCall(args []byte, r *ops.CallRequest) {
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
			if !r.Declared.Add(string(name), value) && len(r.Strays) < maxStrays {
				r.Strays = append(r.Strays, ops.UnknownArgument{Name: string(name), Value: value})
			}
		}
		return nil
	})
}

// unknownTool is what to say of a tool that does not exist here.
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
	if manages(q.cfg) {
		known = append(known, toolUpstreamServers)
	}
	return search.Meant(name, known)
}
