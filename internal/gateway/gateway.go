// Package gateway is the one door, and every operation of the product as a
// method: calling a tool, finding tools, reading a large result, looking at
// servers, the log and the status.
//
// It guarantees that Call is the only way to an upstream tool; that it decides
// (policy.Decide on the live catalog), has the record in the spool before the
// upstream is asked, and writes the outcome always, also on panic and
// cancellation; and that what is forwarded is the bytes that were judged. It
// knows no protocol: MCP, REST and the CLI translate to and from its types.
package gateway

import (
	"encoding/json"
	"time"

	"mcpproxy/internal/activity"
	"mcpproxy/internal/auth"
	"mcpproxy/internal/policy"
)

// Caller is who calls and from where, as the record keeps it.
type Caller struct {
	Actor         auth.Actor
	Source        activity.Source
	SessionID     string
	RequestID     string
	ClientName    string
	ClientVersion string
}

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
	Caller      Caller
	// Meta is the client's _meta to pass on; Notify gets the notifications of
	// the call, in order. See upstream.Call.
	Meta         json.RawMessage
	Notify       func(method string, params json.RawMessage)
	RequestBytes int
	Timeout      time.Duration // 0 = the configured one; a shorter one wins
}

// CallResult is the answer of an upstream tool.
type CallResult struct {
	// Result is the upstream's result object: its bytes, unless it had to be
	// cut to result_limit or warnings had to be added to its _meta.
	Result     json.RawMessage
	IsError    bool // the upstream said isError
	Warnings   []string
	ActivityID string
	Handle     string // for read_result; empty when nothing was cut
}
