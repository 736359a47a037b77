package api

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"time"

	"mcpproxy/internal/config"
	"mcpproxy/internal/gate"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
)

// CallInput is the input of a tool call. It parses its own body: arguments stay raw bytes, and the gate reports and
// records errors in the name, the intent and the arguments.
type CallInput struct {
	Variant  string          `json:"tool_variant" required:"true" words:"variant" doc:"The calling tool, which selects the lane of the call."`
	Name     string          `json:"name" required:"true" doc:"The tool id: server:tool."`
	Args     json.RawMessage `json:"args" type:"object" doc:"The tool's arguments."`
	ArgsJSON json.RawMessage `json:"args_json" type:"string" doc:"The tool's arguments as a string of JSON. Use either args or args_json."`
	Intent   CallIntent      `json:"intent" doc:"The purpose of the call, as the caller declares it."`
	Select   string          `json:"select" doc:"A jq expression. The response then contains only the selected part of the result."`
	Timeout  string          `json:"timeout" doc:"The maximum duration of the call, such as 30s. The configured call_timeout applies if it is shorter."`

	Key string `json:"-" header:"Idempotency-Key" doc:"Up to 255 printable characters. A repeated request with the same key and body returns the first response and does not call the tool again. MCPProxy keeps responses for 24 hours, or until it restarts. The same key with another body is rejected."`

	declared policy.DeclaredIntent // the raw intent
	size     int                   // size of the body in bytes
	sum      [sha256.Size]byte     // hash of the body
}

// CallIntent is the declared intent of a call.
type CallIntent struct {
	OperationType   string `json:"operation_type,omitempty" words:"operation" doc:"The operation type. It must match tool_variant."`
	DataSensitivity string `json:"data_sensitivity,omitempty" words:"sensitivity" doc:"The sensitivity of the data."`
	Reason          string `json:"reason,omitempty" maxLength:"1000" doc:"The reason for the call, for the activity log."`
}

// CallAnswer is the answer of POST /tools/call. A tool error is still an answer: the status is 200 and IsError is set.
type CallAnswer struct {
	Result     json.RawMessage `json:"result" doc:"The CallToolResult of the tool, as its server sent it."`
	IsError    bool            `json:"is_error" doc:"Whether the tool reported an error in its result."`
	Warnings   []string        `json:"warnings"`
	ActivityID string          `json:"activity_id" doc:"The id of the call's activity record."`
	Handle     string          `json:"handle,omitempty" doc:"The handle of a truncated result: read_result on /mcp returns the rest. Absent if the result is complete."`
}

func callTool(a *ops.Admin, ctx context.Context, c ops.Caller, in CallInput) (CallAnswer, error) {
	done, err := c.BeginCall()
	if err != nil {
		return CallAnswer{}, err
	}
	r, err := a.Call(ctx, in.ToGateRequest(c))
	done(len(r.Result))
	return CallAnswer{r.Result, r.IsError, r.Warnings, r.ActivityID, r.Handle}, err
}

// ToGateRequest converts the input for the gate.
func (in CallInput) ToGateRequest(c ops.Caller) gate.LaneCall {
	r := gate.LaneCall{Name: in.Name, Args: in.Args, ArgsJSON: in.ArgsJSON, Declared: in.declared, Caller: c, RequestBytes: in.size}
	if in.Select != "" {
		r.Select = wirejson.AppendString(nil, in.Select)
	}
	r.CallTool, _ = policy.ParseCallToolName(in.Variant)
	r.Timeout, _ = time.ParseDuration(in.Timeout)
	return r
}

// Example returns an example for the OpenAPI document.
func (CallInput) Example() string {
	return `{"tool_variant": "call_tool_read", "name": "server:tool", "args": {}}`
}

func (*CallInput) bodyType() any { return CallInput{} }

// callSummary returns the tool, variant and size of the call, as far as they were parsed.
func (in *CallInput) callSummary() (name string, variant policy.CallToolVariant, size int) {
	variant, _ = policy.ParseCallToolName(in.Variant)
	return in.Name, variant, in.size
}

// idempotencyKeyAndHash returns the Idempotency-Key and the hash of the body.
func (in *CallInput) idempotencyKeyAndHash() (key string, body [sha256.Size]byte) {
	return in.Key, in.sum
}

// answerSize returns the size of the answer for the limit on stored answers.
func (a CallAnswer) answerSize() int { return len(a.Result) }

func (a CallAnswer) recordID() string { return a.ActivityID }

func (in *CallInput) parseBody(of *inputSpec, body []byte) error {
	in.size, in.sum = len(body), sha256.Sum256(body)
	err := of.eachMember(body, func(name string, value []byte) error { return in.setMember(of, name, value) })
	if err == nil {
		err = checkIdempotencyKey(in.Key)
	}
	if err == nil && in.Variant == "" {
		err = problem.New(problem.InvalidParameter, "The member 'tool_variant' is required.",
			"It is one of "+joinOr(callToolVariantWords())+".").With("parameter", "tool_variant").With("allowed", callToolVariantWords())
	}
	return err
}

func (in *CallInput) setMember(of *inputSpec, name string, value []byte) error {
	text, isText := wirejson.String(value)
	switch name {
	case "tool_variant":
		if _, ok := policy.ParseCallToolName(text); !ok {
			return newInvalidValueError(name, displayValue(value), callToolVariantWords()...)
		}
		in.Variant = text
	case "name":
		if !isText {
			return newInvalidValueError(name, displayValue(value), "a string: server:tool")
		}
		in.Name = text
	case "args":
		if wirejson.Kind(value) != 'n' { // null is the same as absent, as on MCP
			in.Args = value
		}
	case "intent":
		in.declared.AddParameter(name, value)
	case "select":
		if !isText {
			return newInvalidValueError(name, displayValue(value), "a string: an expression of jq")
		}
		in.Select = text
	case "timeout":
		if d, err := time.ParseDuration(text); err != nil || d <= 0 {
			return newInvalidValueError(name, displayValue(value), "a duration such as 30s")
		}
		in.Timeout = text
	case "args_json":
		if wirejson.Kind(value) != 'n' {
			in.ArgsJSON = value
		}
	default:
		_, err := of.bodyField(name)
		return err
	}
	return nil
}

// Change changes one setting of a server. The body has exactly one member.
type Change struct{ ops.ServerChange }

// Example returns an example for the OpenAPI document.
func (Change) Example() string { return `one of them, such as {"enabled": false}` }

func (*Change) bodyType() any { return ops.ChangeableServerSettings{} }

func (in *Change) parseBody(of *inputSpec, body []byte) error {
	members, asked := 0, inputField{}
	err := of.eachMember(body, func(name string, value []byte) (err error) {
		asked, err = of.bodyField(name)
		in.Key, in.Value = name, value
		members++
		return err
	})
	if err == nil && members != 1 {
		err = problem.Newf(problem.InvalidRequest, "The body of the request has %d members, but must have exactly one.", members).
			WithHint("Send " + of.exampleBody() + ".")
	}
	if err != nil {
		return err
	}
	on, isBool := wirejson.Bool(in.Value)
	switch {
	case asked.schema.typeName() == "boolean" && !isBool,
		asked.schema.typeName() == "array" && wirejson.Kind(in.Value) != '[' && wirejson.Kind(in.Value) != 'n':
		return asked.wrongTypeError()
	case in.Key == "quarantined" && !on:
		return newInvalidValueError(in.Key, "false", "true").
			WithHint("To end a quarantine, review GET " + Prefix + "/servers/" + escapePathSegment(in.Name) + "/review and approve what it shows.")
	case wirejson.Kind(in.Value) == 'n':
		in.Value = nil
	}
	return nil
}

// MarshalJSON encodes the body.
func (in Change) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]json.RawMessage{in.Key: in.Value})
}

func changeServer(a *ops.Admin, ctx context.Context, c ops.Caller, in Change) (ops.ServerView, error) {
	return a.ChangeServer(ctx, c, in.ServerChange)
}

// ToolChange changes the settings of a tool. The body has the members to change; null removes a setting.
type ToolChange struct{ ops.ToolChange }

// Example returns an example for the OpenAPI document.
func (ToolChange) Example() string { return `{"alias": "new_bug", "always": true}` }

func (*ToolChange) bodyType() any { return ops.ChangeableToolSettings{} }

func (in *ToolChange) parseBody(of *inputSpec, body []byte) error {
	err := of.eachMember(body, func(name string, value []byte) error {
		asked, err := of.bodyField(name)
		if err != nil {
			return err
		}
		_, isBool := wirejson.Bool(value)
		switch {
		case wirejson.Kind(value) == 'n':
			value = nil
		case isBool != (asked.schema.typeName() == "boolean"), !isBool && wirejson.Kind(value) != '"':
			return asked.wrongTypeError()
		}
		in.Changes = append(in.Changes, config.ToolSettingChange{Key: name, Value: bytes.Clone(value)})
		return nil
	})
	if err == nil && len(in.Changes) == 0 {
		err = problem.New(problem.InvalidRequest, "The body of the request changes nothing.", "Send "+of.exampleBody()+".")
	}
	return err
}

// MarshalJSON encodes the body.
func (in ToolChange) MarshalJSON() ([]byte, error) {
	body := map[string]json.RawMessage{}
	for _, one := range in.Changes {
		body[one.Key] = one.Value
	}
	return json.Marshal(body)
}

func changeTool(a *ops.Admin, ctx context.Context, c ops.Caller, in ToolChange) (ops.ToolView, error) {
	return a.ChangeTool(ctx, c, in.ToolChange)
}
