// Package jsonrpc is the envelope of JSON-RPC 2.0 as MCP uses it, and its two
// framings: lines (stdio) and server-sent events (streamable HTTP).
//
// It guarantees that params, results and error data keep the sender's bytes,
// that messages are handed on in the order in which they arrived, and that
// every size is bounded. Requests from clients are parsed strictly (package
// strictjson); answers of servers are parsed leniently in what they carry and
// strictly in their envelope. It does not know MCP's methods.
package jsonrpc

import "encoding/json"

// Message is one JSON-RPC message. A request has Method and ID, a notification
// has Method only, a response has ID and exactly one of Result and Error.
// All raw fields alias the parsed buffer.
type Message struct {
	ID     json.RawMessage // a string, a number, or nil; "null" only in error responses
	Method string
	Params json.RawMessage
	Result json.RawMessage
	Error  *Error
}

// Error is a JSON-RPC error object. It is also a Go error.
type Error struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// The codes that JSON-RPC and MCP define.
const (
	CodeParse              = -32700
	CodeInvalidRequest     = -32600
	CodeMethodNotFound     = -32601
	CodeInvalidParams      = -32602
	CodeInternal           = -32603
	CodeHeaderMismatch     = -32020
	CodeMissingCapability  = -32021
	CodeUnsupportedVersion = -32022
)

// Error gives the message.
func (e *Error) Error() string { return e.Message }
