package wirejson

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
)

// maxBatch limits the number of messages in a batch.
const maxBatch = 100

// ParseClientMessage parses one message of a client: a request, a notification or a response. The text must be
// strict JSON, the ID a string or an integer, params an object or an array. The error is an *RPCError with
// CodeParse or CodeInvalidRequest; then Message.ID is set if it could be read.
func ParseClientMessage(data []byte, lim Limits) (Message, error) {
	if err := Check(data, lim); err != nil {
		return Message{}, &RPCError{Code: CodeParse, Message: "Parse error: " + err.Error()}
	}
	switch Kind(data) {
	case '{':
	case '[':
		return Message{}, invalidRequestError("a batch is not accepted here, send one message at a time")
	default:
		return Message{}, invalidRequestError("the message is not an object")
	}
	var e envelope
	if err := EachMember(data, e.setMember); err != nil {
		return Message{ID: e.stringOrIntegerID()}, invalidRequestError(err.Error())
	}
	return e.toClientMessage()
}

// SplitBatch returns the messages of a batch, which MCP 2025-03-26 allows, for ParseClientMessage. It returns
// nil if data is not an array. Its errors are those of ParseClientMessage.
func SplitBatch(data []byte, lim Limits) ([]json.RawMessage, error) {
	if Kind(data) != '[' {
		return nil, nil
	}
	if err := Check(data, lim); err != nil {
		return nil, &RPCError{Code: CodeParse, Message: "Parse error: " + err.Error()}
	}
	batch := []json.RawMessage{}
	err := EachElement(data, func(value []byte) error {
		if batch = append(batch, value); len(batch) > maxBatch {
			return invalidRequestError("a batch holds at most " + strconv.Itoa(maxBatch) + " messages")
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case len(batch) == 0:
		return nil, invalidRequestError("the batch is empty")
	}
	return batch, nil
}

// ParseServerMessage parses one message of a server. Each member of the envelope may occur once, in its exact spelling.
// Other members need only be well-formed JSON, nested at most 1000 deep. The error is an *RPCError with
// CodeParse or CodeInvalidRequest.
func ParseServerMessage(data []byte) (Message, error) {
	c := Cursor{Text: data, Depth: RelayDepth}
	var e envelope
	if c.Peek() != '{' && c.ReadValue() != nil {
		return Message{}, invalidRequestError("the message is not an object")
	}
	for end := c.Enter('{'); c.More(end); {
		name := Unescape(c.ReadName())
		value := c.ReadValue()
		if value == nil {
			break
		}
		if err := e.setMember(name, value); err != nil {
			return Message{}, invalidRequestError(err.Error())
		}
	}
	if err := c.Finish(); err != nil {
		return Message{}, &RPCError{Code: CodeParse, Message: "Parse error: " + err.Error()}
	}
	return e.toServerMessage()
}

// MalformedResponseID returns the ID of a response that ParseServerMessage rejects, so that its request fails at once.
// Such a response has a result or an error that is truncated, malformed, nested too deep, or contradicts the envelope.
// It returns nil if the text before the error does not prove that the message is a response, because a log line may
// also be JSON with an ID.
func MalformedResponseID(data []byte) json.RawMessage {
	c := Cursor{Text: data, Depth: RelayDepth}
	var e envelope
	var name []byte
	for end := c.Enter('{'); c.More(end); {
		next := c.ReadName()
		if next == nil {
			break
		}
		name = next
		if value := c.ReadValue(); value != nil && e.setMember(Unescape(name), value) != nil {
			return nil
		}
	}
	if c.Finish() != nil {
		if string(name) != "result" && string(name) != "error" {
			return nil
		}
	} else if e.result == nil && e.err == nil {
		return nil
	}
	if e.version == nil || e.method != nil {
		return nil
	}
	return e.id
}

func invalidRequestError(reason string) *RPCError {
	return &RPCError{Code: CodeInvalidRequest, Message: "Invalid request: " + reason}
}

// envelope contains the raw members of a message. Missing members are nil.
type envelope struct {
	version, id, method, params, result, err []byte
}

// envelopeMembers are the names of the members of an envelope.
var envelopeMembers = [...]string{"jsonrpc", "id", "method", "params", "result", "error"}

func (e *envelope) fieldByName(name []byte) *[]byte {
	switch string(name) {
	case "jsonrpc":
		return &e.version
	case "id":
		return &e.id
	case "method":
		return &e.method
	case "params":
		return &e.params
	case "result":
		return &e.result
	case "error":
		return &e.err
	}
	return nil
}

// setMember stores a member. It ignores unknown members. It rejects a member that a parser that ignores case or NUL
// would treat as a known one.
func (e *envelope) setMember(name, value []byte) error {
	if slot := e.fieldByName(name); slot != nil {
		if *slot != nil {
			return errors.New(`duplicate member "` + string(name) + `"`)
		}
		*slot = value
		return nil
	}
	if bytes.IndexByte(name, 0) >= 0 {
		return errors.New("a member name contains NUL")
	}
	for _, known := range envelopeMembers {
		if bytes.EqualFold(name, []byte(known)) {
			return errors.New(`member "` + known + `" is spelled ` + strconv.QuoteToASCII(string(name)))
		}
	}
	return nil
}

// toClientMessage validates the envelope of a client's message.
func (e *envelope) toClientMessage() (Message, error) {
	m := Message{ID: e.stringOrIntegerID()}
	method, reason := e.checkCommonRules()
	isError := e.err != nil && string(e.id) == "null"
	switch {
	case reason != "":
	case e.id != nil && m.ID == nil && !isError:
		reason = "id must be a string or an integer"
	case method == "" && e.id == nil:
		reason = "a response must have an id"
	case e.params != nil && Kind(e.params) != '{' && Kind(e.params) != '[':
		reason = "params must be an object or an array"
	case e.err != nil && Kind(e.err) != '{':
		reason = "error must be an object"
	}
	if reason != "" {
		return m, invalidRequestError(reason)
	}
	if isError {
		m.ID = e.id
	}
	m.Method, m.Params, m.Result, m.Error = method, e.params, e.result, parseRPCError(e.err)
	return m, nil
}

// stringOrIntegerID returns the ID if it is a string or an integer.
func (e *envelope) stringOrIntegerID() json.RawMessage {
	switch Kind(e.id) {
	case '"':
		return e.id
	case '0':
		if !bytes.ContainsAny(e.id, ".eE") {
			return e.id
		}
	}
	return nil
}

// toServerMessage validates the envelope of a server's message. Null members count as missing if they would otherwise
// make no sense, because some servers send all members. An error without an ID counts as one with a null ID.
func (e *envelope) toServerMessage() (Message, error) {
	if e.method != nil || e.result != nil {
		e.err = nullToNil(e.err)
	}
	if e.method != nil || e.err != nil {
		e.result = nullToNil(e.result)
	}
	switch {
	case e.method != nil:
		e.id = nullToNil(e.id)
	case e.err != nil && e.id == nil:
		e.id = []byte("null")
	}
	method, reason := e.checkCommonRules()
	kind := Kind(e.id)
	switch {
	case reason != "":
	case method == "" && e.id == nil:
		reason = "a response must have an id"
	case kind == 'n' && e.err == nil:
		reason = "id must be a string or a number"
	case e.id != nil && kind != '"' && kind != '0' && kind != 'n':
		reason = "id must be a string or a number"
	}
	if reason != "" {
		return Message{}, invalidRequestError(reason)
	}
	return Message{ID: e.id, Method: method, Params: nullToNil(e.params), Result: e.result, Error: parseRPCError(e.err)}, nil
}

func nullToNil(value []byte) []byte {
	if string(value) == "null" {
		return nil
	}
	return value
}

// checkCommonRules validates the rules for both sides, and returns the method or the reason for an error.
func (e *envelope) checkCommonRules() (method, reason string) {
	if string(e.version) != `"2.0"` {
		if version, _ := String(e.version); version != "2.0" {
			return "", `"jsonrpc" must be "2.0"`
		}
	}
	switch {
	case e.method == nil && e.result == nil && e.err == nil:
		return "", "there is neither a method nor a result nor an error"
	case e.method != nil && (e.result != nil || e.err != nil):
		return "", "there is both a method and an answer"
	case e.result != nil && e.err != nil:
		return "", "there is both a result and an error"
	case e.method == nil && e.params != nil:
		return "", "a response has no params"
	case e.method == nil:
		return "", ""
	}
	if method, _ = String(e.method); method == "" {
		return "", "method must be a string that is not empty"
	}
	return method, ""
}

// parseRPCError parses an error object. A missing code becomes CodeInternal, and a missing message becomes "". An error
// that is not an object is kept as data.
func parseRPCError(raw []byte) *RPCError {
	if raw == nil {
		return nil
	}
	e := &RPCError{Code: CodeInternal}
	if Kind(raw) != '{' {
		e.Message, _ = String(raw)
		e.Data = raw
		return e
	}
	if code, ok := Int(Find(raw, "code")); ok {
		e.Code = int(code)
	}
	e.Message, _ = String(Find(raw, "message"))
	e.Data = Find(raw, "data")
	return e
}
