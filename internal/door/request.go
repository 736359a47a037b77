package door

import (
	"encoding/json"
	"time"

	"mcpproxy/internal/auth"
	"mcpproxy/internal/policy"
)

// CallRequest is a call as a surface received it. Args and ArgsJSON are the
// two forms of the arguments; giving both is a problem, giving none means {}.
type CallRequest struct {
	Variant  policy.Variant
	Name     string
	Args     json.RawMessage // the JSON value given as args; nil when not given
	ArgsJSON *string         // nil when not given
	// ArgsProblem is set when the surface already found that the arguments
	// cannot be read (args_json is not a string, …).
	ArgsProblem string
	Declared    policy.Declared
	Caller      auth.Caller // without a SessionID it gets one
	// Meta is the client's _meta to pass on; Notify gets the notifications of
	// the call, in order. See session.Call and session.Request.
	Meta         json.RawMessage
	Notify       func(method string, params json.RawMessage)
	RequestBytes int
	Timeout      time.Duration // 0 = the configured one; a shorter one wins
}

// CallResult is the answer of a tool.
type CallResult struct {
	// Result is the server's result object: its bytes, unless it had to be
	// cut to result_limit or warnings had to be added to its _meta.
	Result     json.RawMessage
	IsError    bool // the server said isError
	Warnings   []string
	ActivityID string
	Handle     string // for read_result; empty when nothing was cut
}
