package wirejson

import (
	"encoding/json"
	"strconv"
)

// Message is one JSON-RPC message. A request has Method and ID, a notification
// has Method only, a response has ID and exactly one of Result and Error.
// All raw fields alias the parsed buffer.
type Message struct {
	ID     json.RawMessage // a string, a number or nil; "null" only in error responses
	Method string
	Params json.RawMessage
	Result json.RawMessage
	Error  *RPCError
}

// IsRequest reports whether m expects a reply.
func (m Message) IsRequest() bool { return m.Method != "" && m.ID != nil }

// IsNotification reports whether m expects no reply.
func (m Message) IsNotification() bool { return m.Method != "" && m.ID == nil }

// IsResponse reports whether m is a reply.
func (m Message) IsResponse() bool { return m.Method == "" && (m.Result != nil || m.Error != nil) }

// RPCError is a JSON-RPC error object. It is also a Go error.
type RPCError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// The codes that JSON-RPC defines.
const (
	CodeParse          = -32700
	CodeInvalidRequest = -32600
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeInternal       = -32603
)

// Error returns the message.
func (e *RPCError) Error() string { return e.Message }

const messageStart = `{"jsonrpc":"2.0",`

// AppendRequest appends a request to dst. Nil params are omitted.
func AppendRequest(dst []byte, id uint64, method string, params json.RawMessage) []byte {
	dst = append(dst, messageStart+`"id":`...)
	dst = strconv.AppendUint(dst, id, 10)
	dst = append(dst, ',')
	return appendMethodAndParams(dst, method, params)
}

// AppendRequestWithID appends a request with a given ID.
func AppendRequestWithID(dst []byte, id json.RawMessage, method string, params json.RawMessage) []byte {
	dst = append(append(dst, messageStart+`"id":`...), id...)
	return appendMethodAndParams(append(dst, ','), method, params)
}

// AppendNotification appends a notification to dst. Nil params are omitted.
func AppendNotification(dst []byte, method string, params json.RawMessage) []byte {
	return appendMethodAndParams(append(dst, messageStart...), method, params)
}

func appendMethodAndParams(dst []byte, method string, params json.RawMessage) []byte {
	dst = AppendString(append(dst, `"method":`...), method)
	if params != nil {
		dst = append(append(dst, `,"params":`...), params...)
	}
	return append(dst, '}')
}

// AppendResult appends a response with a result to dst. A nil result becomes {}.
func AppendResult(dst []byte, id, result json.RawMessage) []byte {
	dst = append(appendResponseStart(dst, id), `,"result":`...)
	if result == nil {
		return append(dst, "{}}"...)
	}
	return append(append(dst, result...), '}')
}

// AppendError appends a response with an error to dst. A nil id becomes null, as for a request whose id could not be
// read.
func AppendError(dst []byte, id json.RawMessage, e *RPCError) []byte {
	dst = append(appendResponseStart(dst, id), `,"error":{"code":`...)
	dst = strconv.AppendInt(dst, int64(e.Code), 10)
	dst = AppendString(append(dst, `,"message":`...), e.Message)
	if e.Data != nil {
		dst = append(append(dst, `,"data":`...), e.Data...)
	}
	return append(dst, "}}"...)
}

func appendResponseStart(dst []byte, id json.RawMessage) []byte {
	if id == nil {
		id = json.RawMessage("null")
	}
	return append(append(dst, messageStart+`"id":`...), id...)
}
