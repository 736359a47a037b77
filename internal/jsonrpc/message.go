// Package jsonrpc is the envelope of JSON-RPC 2.0 as MCP uses it, and its two
// framings: lines (stdio) and server-sent events (streamable HTTP).
//
// It guarantees that params, results and error data keep the sender's bytes,
// that messages are handed on in the order in which they arrived, and that
// every size is bounded. Requests from clients are parsed strictly (package
// strictjson); answers of servers are parsed leniently in what they carry and
// strictly in their envelope. It does not know MCP's methods.
package jsonrpc

import (
	"encoding/json"
	"strconv"
)

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

// IsRequest says whether m asks for an answer.
func (m Message) IsRequest() bool { return m.Method != "" && m.ID != nil }

// IsNotification says whether m asks for no answer.
func (m Message) IsNotification() bool { return m.Method != "" && m.ID == nil }

// IsResponse says whether m is an answer.
func (m Message) IsResponse() bool { return m.Method == "" && (m.Result != nil || m.Error != nil) }

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

const opening = `{"jsonrpc":"2.0",`

// AppendRequest appends a request to dst. Params that are nil are left out.
func AppendRequest(dst []byte, id uint64, method string, params json.RawMessage) []byte {
	dst = append(dst, opening+`"id":`...)
	dst = strconv.AppendUint(dst, id, 10)
	dst = append(dst, ',')
	return appendCall(dst, method, params)
}

// AppendNotification appends a notification to dst. Params that are nil are
// left out.
func AppendNotification(dst []byte, method string, params json.RawMessage) []byte {
	return appendCall(append(dst, opening...), method, params)
}

func appendCall(dst []byte, method string, params json.RawMessage) []byte {
	dst = appendString(append(dst, `"method":`...), method)
	if params != nil {
		dst = append(append(dst, `,"params":`...), params...)
	}
	return append(dst, '}')
}

// AppendResult appends a response with a result to dst. A nil result is {}.
func AppendResult(dst []byte, id, result json.RawMessage) []byte {
	dst = append(appendID(dst, id), `,"result":`...)
	if result == nil {
		return append(dst, "{}}"...)
	}
	return append(append(dst, result...), '}')
}

// AppendError appends a response with an error to dst. A nil id is null, as
// for a request whose id could not be read.
func AppendError(dst []byte, id json.RawMessage, e *Error) []byte {
	dst = append(appendID(dst, id), `,"error":{"code":`...)
	dst = strconv.AppendInt(dst, int64(e.Code), 10)
	dst = appendString(append(dst, `,"message":`...), e.Message)
	if e.Data != nil {
		dst = append(append(dst, `,"data":`...), e.Data...)
	}
	return append(dst, "}}"...)
}

func appendID(dst []byte, id json.RawMessage) []byte {
	if id == nil {
		id = json.RawMessage("null")
	}
	return append(append(dst, opening+`"id":`...), id...)
}

// appendString appends s as a JSON string; what is not UTF-8 becomes U+FFFD.
func appendString(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for _, r := range s { // broken bytes come as U+FFFD
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r == '\n':
			dst = append(dst, `\n`...)
		case r < ' ':
			dst = append(dst, '\\', 'u', '0', '0', hex[r>>4], hex[r&15])
		case r < 0x80:
			dst = append(dst, byte(r))
		default:
			dst = append(dst, string(r)...)
		}
	}
	return append(dst, '"')
}
