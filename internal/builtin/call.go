package builtin

import (
	"context"
	"encoding/json"
	"strings"

	"mcpproxy/internal/config"
	"mcpproxy/internal/gateway"
	"mcpproxy/internal/jsonrpc"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/policy"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/rawjson"
	"mcpproxy/internal/reply"
	"mcpproxy/internal/search"
	"mcpproxy/internal/session"
)

// request is a tools/call, and what is read of it.
type request struct {
	*Surface
	*session.Request
	modern bool
	cfg    *config.Config

	name, args json.RawMessage // the members of params; nil when not given
}

// read finds the parts of the params.
func (q *request) read() error {
	return rawjson.Members(q.Params, func(name, value []byte) error {
		switch string(name) {
		case "name":
			q.name = value
		case "arguments":
			q.args = value
		}
		return nil
	})
}

// run runs a built-in tool.
func (q *request) run(ctx context.Context) session.Reply {
	_ = q.read() // no params have no parts
	name, ok := rawjson.String(q.name)
	if !ok {
		return q.invalid(ctx, "params.name must be a string: the tool to call")
	}
	switch rawjson.Kind(q.args) {
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
	case name == retrieveTools:
		return q.retrieveTools(ctx)
	case name == readResult:
		return q.readResult(ctx)
	case name == upstreamServers && manages(q.cfg):
		return q.upstreamServers(ctx)
	}
	unknown := q.unknownTool(name)
	q.record(ctx, problem.New(problem.ToolNotFound, unknown.Message, ""))
	return session.Reply{Error: unknown}
}

var noArguments = []byte("{}") // never written to

// callVariant calls an upstream's tool.
func (q *request) callVariant(ctx context.Context, v policy.Variant) session.Reply {
	r := gateway.CallRequest{Variant: v, Caller: *q.Caller, Notify: notices(q.Say, q.modern), RequestBytes: q.Size}
	if q.Meta != nil {
		r.Meta = q.Meta.Rest
	}
	readCall(q.args, &r)
	res, err := q.gateway.Call(ctx, r)
	if err != nil {
		return q.reply.Refusal(q.modern, err)
	}
	if rawjson.Kind(res.Result) != '{' {
		return q.reply.Refusal(q.modern, problem.New(problem.UpstreamError, "The server's result is not an object.",
			"This is a fault of the server: try another tool, or report it to the server's author."))
	}
	return q.reply.Passed(q.modern, res.Result)
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

// readCall reads the arguments of a calling tool. What cannot be read goes to
// the gateway as a problem or as its JSON text, so that the refusal is on
// record like any other. An explicit null counts as not given.
func readCall(args []byte, r *gateway.CallRequest) {
	_ = rawjson.Members(args, func(name, value []byte) error {
		if rawjson.Kind(value) == 'n' {
			return nil
		}
		switch string(name) {
		case "name":
			var ok bool
			if r.Name, ok = rawjson.String(value); !ok {
				r.Name = rawjson.Clip(string(value), reply.MaxIdentity)
			}
		case "args":
			r.Args = value
		case "args_json":
			if text, ok := rawjson.String(value); ok {
				r.ArgsJSON = &text
			} else {
				r.ArgsProblem = "args_json must be a string that holds the arguments as JSON; give an object as args"
			}
		default:
			r.Declared.Add(string(name), value) // what it does not know is ignored
		}
		return nil
	})
}

// unknownTool answers for a tool that does not exist here.
func (q *request) unknownTool(name string) *jsonrpc.Error {
	message := "Unknown tool: " + reply.Quote(name) + "."
	switch nearest := q.nearest(name); {
	case name == "call_tool":
		message = "Tool 'call_tool' not found. Use call_tool_read, call_tool_write, or call_tool_destructive with matching intent.operation_type. See retrieve_tools for annotations and recommendations."
	case strings.Contains(name, ":"):
		message += " Tools of the connected servers are called through call_tool_read, call_tool_write or call_tool_destructive, with their name as the parameter name."
	case nearest != "":
		message += " Did you mean '" + nearest + "'?"
	default:
		message += " Find tools with retrieve_tools and call them with call_tool_read, call_tool_write or call_tool_destructive."
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: message}
}

func (q *request) nearest(name string) string {
	known := []string{retrieveTools, readResult}
	for _, v := range variants {
		known = append(known, policy.VariantOf(v.operation).String())
	}
	if manages(q.cfg) {
		known = append(known, upstreamServers)
	}
	if near := search.Nearest(name, known, 1); len(near) > 0 {
		return near[0]
	}
	return ""
}
