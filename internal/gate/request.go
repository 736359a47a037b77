package gate

import (
	"encoding/json"
	"time"

	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp/session"
)

// Request is a call by a calling tool. Args and ArgsJSON are the two forms of the arguments, as JSON
// values; giving both is a problem, giving none means {}.
type Request struct {
	Variant  policy.Variant
	Name     string
	Args     json.RawMessage // nil when not given
	ArgsJSON json.RawMessage
	// Hands says that an argument {"$result": handle, "path": path} stands for a result.
	Hands bool
	// Select is an expression of jq, as a JSON value: what to show of the result. nil when
	// not given.
	Select json.RawMessage
	// Unknown is what else was given that is no parameter of a calling tool: perhaps
	// arguments of the tool in the wrong place.
	Unknown  []UnknownArgument
	Declared policy.Declared
	Caller   auth.Caller // without a SessionID it gets one
	// Meta is the client's _meta to pass on; Say gets the notifications of
	// the call, in order. See session.Call and session.Request.
	Meta         json.RawMessage
	Say          func(session.Event)
	Client       *session.Request // that the client has made, by which it may be asked; nil for who is no client of MCP
	RequestBytes int
	Timeout      time.Duration // 0 = the configured one; a shorter one wins
}

// UnknownArgument is a parameter that no calling tool has.
type UnknownArgument struct {
	Name  string
	Value json.RawMessage
}

// Result is the answer of a tool.
type Result struct {
	// Result is the server's result object: its bytes, unless it had to be
	// cut to result_limit or warnings had to be added to its _meta.
	Result     json.RawMessage
	IsError    bool // the server said isError
	Warnings   []string
	ActivityID string
	Handle     string // for read_result; empty when nothing was cut
}
