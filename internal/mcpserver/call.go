package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"mcpproxy/internal/gateway"
	"mcpproxy/internal/jsonrpc"
	"mcpproxy/internal/policy"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/search"
	"mcpproxy/internal/strictjson"
	"mcpproxy/internal/upstream"
)

// codeCancelled is the code of the answer to a request that the client itself
// cancelled, where HTTP demands that there is one. It is outside of the range
// that JSON-RPC reserves.
const codeCancelled = -32800

// notify takes the notifications of a call; nil when nobody wants them.
type notify = func(method string, params json.RawMessage)

// cancellable gives the context of a request that its client can cancel by a
// notification, until end.
func (x *exchange) cancellable() (ctx context.Context, cancel context.CancelCauseFunc, end func()) {
	ctx, cancel = context.WithCancelCause(x.r.Context())
	if x.session == nil {
		return ctx, cancel, func() { cancel(nil) }
	}
	id := string(x.msg.ID)
	x.session.begin(id, cancel)
	return ctx, cancel, func() { x.session.end(id); cancel(nil) }
}

// reply runs a request and gives the client what it comes to: as plain JSON, or
// as the last event of a stream when something is said before. st is nil for a
// client that takes no stream.
func (x *exchange) reply(run func(ctx context.Context, st *stream) outcome) {
	ctx, cancel, end := x.cancellable()
	defer end()
	plain, streamed := accepts(x.r.Header)
	if !streamed {
		x.finish(ctx, run(ctx, nil), nil)
		return
	}
	st := newStream(x.w, cancel)
	defer func() { x.answered = st.finish(nil) || x.answered }()
	if !plain {
		st.open()
	}
	x.finish(ctx, run(ctx, st), st)
}

// callTool answers tools/call.
func (x *exchange) callTool() {
	x.reply(func(ctx context.Context, st *stream) outcome {
		if st == nil {
			return x.runTool(ctx, nil)
		}
		return x.runTool(ctx, x.relay(st))
	})
}

// callInBatch is callTool for a message of a batch.
func (x *exchange) callInBatch() outcome {
	ctx, _, end := x.cancellable()
	defer end()
	return x.runTool(ctx, nil)
}

// relay gives on what belongs on the stream of a call.
func (x *exchange) relay(st *stream) notify {
	return func(method string, params json.RawMessage) {
		// In the modern era log messages need a capability that this surface
		// does not have.
		if method == "notifications/progress" || method == "notifications/message" && !x.modern {
			st.notify(method, params)
		}
	}
}

// finish gives the outcome of a call to its client. A client that has
// cancelled the call gets none, as far as HTTP can do without.
func (x *exchange) finish(ctx context.Context, o outcome, st *stream) {
	_, byNotice := errors.AsType[*upstream.Cancelled](context.Cause(ctx))
	cancelled := byNotice || errors.Is(context.Cause(ctx), errCancelled)
	if cancelled && st != nil {
		st.open()
	}
	switch {
	case o.over && (st == nil || !st.settle()):
		x.overRelay()
	case st != nil && st.settle():
		var last []byte
		if !cancelled {
			last = jsonrpc.AppendEvent(nil, "", o.append(nil, x.msg.ID))
		}
		x.answered = st.finish(last)
	case cancelled:
		x.fail(http.StatusOK, &jsonrpc.Error{Code: codeCancelled, Message: "The request was cancelled."})
	default:
		x.send(o)
	}
}

// runTool runs a built-in tool.
func (x *exchange) runTool(ctx context.Context, say notify) outcome {
	name, ok := strictjson.String(x.params.name)
	if !ok {
		return outcome{err: invalidParams("params.name must be a string: the tool to call")}
	}
	args := x.params.arguments
	switch strictjson.Kind(args) {
	case '{':
	case 'n':
		args = noArguments
	default:
		if args != nil {
			return outcome{err: invalidParams("params.arguments must be an object")}
		}
		args = noArguments
	}
	if v, ok := policy.ParseVariant(name); ok {
		return x.callVariant(ctx, v, args, say)
	}
	switch {
	case name == retrieveTools:
		return x.retrieveTools(ctx, args)
	case name == readResult:
		return x.readResult(ctx, args)
	case name == upstreamServers && x.managed():
		return x.upstreamServers(ctx, args)
	}
	return outcome{err: x.unknownTool(name)}
}

var noArguments = []byte("{}") // never written to

// callVariant calls an upstream's tool.
func (x *exchange) callVariant(ctx context.Context, v policy.Variant, args []byte, say notify) outcome {
	r := gateway.CallRequest{Variant: v, Caller: x.caller(), Meta: x.meta.forward, Notify: say, RequestBytes: x.size}
	readCall(args, &r)
	res, err := x.s.Gateway.Call(ctx, r)
	if err != nil {
		return outcome{result: x.refusal(err)}
	}
	if strictjson.Kind(res.Result) != '{' {
		return outcome{result: x.refusal(problem.New(problem.UpstreamError, "The server's result is not an object.",
			"This is a fault of the server: try another tool, or report it to the server's author."))}
	}
	return outcome{result: x.toolResult(res.Result)}
}

// readCall reads the arguments of a calling tool. What cannot be read goes to
// the gateway as a problem or as its JSON text, so that the refusal is on
// record like any other. An explicit null counts as not given.
func readCall(args []byte, r *gateway.CallRequest) {
	_ = strictjson.Members(args, func(name, value []byte) error {
		if strictjson.Kind(value) == 'n' {
			return nil
		}
		switch string(name) {
		case "name":
			var ok bool
			if r.Name, ok = strictjson.String(value); !ok {
				r.Name = bounded(string(value), maxIdentity)
			}
		case "args":
			r.Args = value
		case "args_json":
			if text, ok := strictjson.String(value); ok {
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
func (x *exchange) unknownTool(name string) *jsonrpc.Error {
	message := "Unknown tool: " + quote(name) + "."
	switch nearest := x.nearest(name); {
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

func (x *exchange) nearest(name string) string {
	known := []string{retrieveTools, readResult}
	for _, v := range variants {
		known = append(known, policy.VariantOf(v.operation).String())
	}
	if x.managed() {
		known = append(known, upstreamServers)
	}
	if near := search.Nearest(name, known, 1); len(near) > 0 {
		return near[0]
	}
	return ""
}
