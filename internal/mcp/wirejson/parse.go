package wirejson

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
)

// maxBatch is the largest number of messages in a batch.
const maxBatch = 100

// ParseRequest reads one message of a client: a request, a notification, or
// the response to a request of ours. The whole text must be strict JSON, the
// id a string or an integer, params an object or an array. The error is an
// *Error with CodeParse or CodeInvalidRequest; Message.ID is then set when it
// could be read, for the answer.
func ParseRequest(data []byte, lim Limits) (Message, error) {
	if err := Check(data, lim); err != nil {
		return Message{}, &RPCError{Code: CodeParse, Message: "Parse error: " + err.Error()}
	}
	switch Kind(data) {
	case '{':
	case '[':
		return Message{}, invalid("a batch is not accepted here, send one message at a time")
	default:
		return Message{}, invalid("the message is not an object")
	}
	var e envelope
	if err := Members(data, e.set); err != nil {
		return Message{ID: e.clientID()}, invalid(err.Error())
	}
	return e.fromClient()
}

// SplitBatch returns the messages of a batch, which clients of MCP 2025-03-26
// may send, each to be read by ParseRequest. They are nil when data is no
// array. The error is as ParseRequest's.
func SplitBatch(data []byte, lim Limits) ([]json.RawMessage, error) {
	if Kind(data) != '[' {
		return nil, nil
	}
	if err := Check(data, lim); err != nil {
		return nil, &RPCError{Code: CodeParse, Message: "Parse error: " + err.Error()}
	}
	batch := []json.RawMessage{}
	err := Elements(data, func(value []byte) error {
		if batch = append(batch, value); len(batch) > maxBatch {
			return invalid("a batch holds at most " + strconv.Itoa(maxBatch) + " messages")
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case len(batch) == 0:
		return nil, invalid("the batch is empty")
	}
	return batch, nil
}

// Parse reads one message of a server. Only the members of the envelope are
// judged: each at most once and in its own spelling. What they carry need only
// be well-formed JSON, nested at most 1000 deep; its strings, names and numbers
// are not looked at. The error is an *Error with CodeParse or
// CodeInvalidRequest.
func Parse(data []byte) (Message, error) {
	c := Cursor{Text: data, Depth: CarriedDepth}
	var e envelope
	if c.Peek() != '{' && c.Value() != nil {
		return Message{}, invalid("the message is not an object")
	}
	for end := c.Open('{'); c.More(end); {
		name := Unescape(c.Name())
		value := c.Value()
		if value == nil {
			break
		}
		if err := e.set(name, value); err != nil {
			return Message{}, invalid(err.Error())
		}
	}
	if err := c.Finish(); err != nil {
		return Message{}, &RPCError{Code: CodeParse, Message: "Parse error: " + err.Error()}
	}
	return e.fromServer()
}

// BrokenAnswer returns the id of a response that Parse does not read, so that the
// request need not wait for another one: its result or error is cut off, is no
// JSON or nested too deep, or does not go with the rest of the envelope. It is
// nil when the text before that place does not make it a response: a line of
// somebody's log may be JSON with an id, too.
func BrokenAnswer(data []byte) json.RawMessage {
	c := Cursor{Text: data, Depth: CarriedDepth}
	var e envelope
	var name []byte
	for end := c.Open('{'); c.More(end); {
		next := c.Name()
		if next == nil {
			break
		}
		name = next
		if value := c.Value(); value != nil && e.set(Unescape(name), value) != nil {
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

func invalid(reason string) *RPCError {
	return &RPCError{Code: CodeInvalidRequest, Message: "Invalid request: " + reason}
}

// envelope holds the raw members of a message; nil is absent.
type envelope struct {
	version, id, method, params, result, err []byte
}

// known are the members of an envelope.
var known = [...]string{"jsonrpc", "id", "method", "params", "result", "error"}

func (e *envelope) slot(name []byte) *[]byte {
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

// set takes a member. A member that MCP does not know is left out, unless a
// parser that is careless about case or NUL may take it for one that it knows.
func (e *envelope) set(name, value []byte) error {
	if slot := e.slot(name); slot != nil {
		if *slot != nil {
			return errors.New(`duplicate member "` + string(name) + `"`)
		}
		*slot = value
		return nil
	}
	if bytes.IndexByte(name, 0) >= 0 {
		return errors.New("a member name contains NUL")
	}
	for _, known := range known {
		if bytes.EqualFold(name, []byte(known)) {
			return errors.New(`member "` + known + `" is spelled ` + strconv.QuoteToASCII(string(name)))
		}
	}
	return nil
}

// fromClient judges the envelope of a client's message.
func (e *envelope) fromClient() (Message, error) {
	m := Message{ID: e.clientID()}
	method, reason := e.common()
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
		return m, invalid(reason)
	}
	if isError {
		m.ID = e.id
	}
	m.Method, m.Params, m.Result, m.Error = method, e.params, e.result, readError(e.err)
	return m, nil
}

// clientID is the id when it is a string or an integer, else nil.
func (e *envelope) clientID() json.RawMessage {
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

// fromServer judges the envelope of a server's message. Members that are null
// count as absent where that is the only sense, since some servers send all,
// and an error without an id as one whose id could not be read.
func (e *envelope) fromServer() (Message, error) {
	if e.method != nil || e.result != nil {
		e.err = unlessNull(e.err)
	}
	if e.method != nil || e.err != nil {
		e.result = unlessNull(e.result)
	}
	switch {
	case e.method != nil:
		e.id = unlessNull(e.id)
	case e.err != nil && e.id == nil:
		e.id = []byte("null")
	}
	method, reason := e.common()
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
		return Message{}, invalid(reason)
	}
	return Message{ID: e.id, Method: method, Params: unlessNull(e.params), Result: e.result, Error: readError(e.err)}, nil
}

func unlessNull(value []byte) []byte {
	if string(value) == "null" {
		return nil
	}
	return value
}

// common judges what holds for both sides, and returns the method.
func (e *envelope) common() (method, reason string) {
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

// readError reads an error object. What it lacks it gets: a code of an
// internal error, an empty message. An error that is no object is kept as data.
func readError(raw []byte) *RPCError {
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
