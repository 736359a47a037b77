package api

import (
	"context"
	"encoding/json"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"mcpproxy/internal/gateway"
	"mcpproxy/internal/policy"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/strictjson"
)

// CallAnswer is the answer of POST /tools/call. A tool that reports a failure
// of its own has still answered: the status is 200 and IsError is set.
type CallAnswer struct {
	Result     json.RawMessage `json:"result" doc:"The tool's CallToolResult, as its server sent it."`
	IsError    bool            `json:"is_error" doc:"The tool reports a failure of its own."`
	Warnings   []string        `json:"warnings"`
	ActivityID string          `json:"activity_id" doc:"The record of the call."`
	Handle     string          `json:"handle,omitempty" doc:"Set when the result was cut: read_result on /mcp gives the rest."`
}

// callForm is the body of POST /tools/call.
func callForm() form {
	longest := policy.MaxReason
	reason := word("Why, for the log.")
	reason.MaxLength = &longest
	return form{
		example: `{"tool_variant": "call_tool_read", "name": "server:tool", "args": {}}`,
		fields: []field{
			{"tool_variant", word("The calling tool.", variants()...), true},
			{"name", word("The tool id: server:tool."), true},
			{"args", &huma.Schema{Type: huma.TypeObject, Description: "The tool's arguments.", AdditionalProperties: true}, false},
			{"intent", &huma.Schema{Type: huma.TypeObject, Description: "What the caller declares.", Properties: map[string]*huma.Schema{
				"operation_type":   word("Must be that of the variant.", operations()...),
				"data_sensitivity": word("How sensitive the data is.", Sensitivities()...),
				"reason":           reason,
			}}, false},
			{"timeout", word("How long the call may take, such as 30s; the configured call_timeout if that is shorter."), false},
		},
	}
}

func (s *Server) call(ctx context.Context, r *request) (CallAnswer, error) {
	body, err := readBody(r.http)
	if err != nil {
		return CallAnswer{}, err
	}
	req, err := parseCall(body)
	if err != nil {
		return CallAnswer{}, err
	}
	req.Caller, req.RequestBytes = caller(r), len(body)
	result, err := s.deps.Gateway.Call(ctx, req)
	if err != nil {
		return CallAnswer{}, &recorded{err, result.ActivityID}
	}
	return CallAnswer{result.Result, result.IsError, nonNil(result.Warnings), result.ActivityID, result.Handle}, nil
}

// parseCall reads the body strictly. What is wrong with name, intent and
// arguments themselves, the gateway says, and records.
func parseCall(body []byte) (gateway.CallRequest, error) {
	var req gateway.CallRequest
	err := callForm().read(body, func(name string, value []byte) error { return setMember(&req, name, value) })
	if err == nil && req.Variant == policy.NoVariant {
		err = problem.New(problem.InvalidParameter, "The member 'tool_variant' is required.",
			"It is one of "+oneOf(variants())+".").With("parameter", "tool_variant").With("allowed", variants())
	}
	return req, err
}

func setMember(req *gateway.CallRequest, name string, value []byte) error {
	switch name {
	case "tool_variant":
		s, _ := strictjson.String(value)
		v, ok := policy.ParseVariant(s)
		if !ok {
			return invalidValue(name, shown(value), variants()...)
		}
		req.Variant = v
	case "name":
		s, ok := strictjson.String(value)
		if !ok {
			return invalidValue(name, shown(value), "a string: server:tool")
		}
		req.Name = s
	case "args":
		if strictjson.Kind(value) != 'n' { // null is as good as nothing, as on MCP
			req.Args = value
		}
	case "intent":
		req.Declared.Add(name, value)
	case "timeout":
		s, _ := strictjson.String(value)
		d, err := time.ParseDuration(s)
		if err != nil || d <= 0 {
			return invalidValue(name, shown(value), "a duration such as 30s")
		}
		req.Timeout = d
	case "args_json":
		return problem.New(problem.InvalidArgs, "Invalid arguments: args_json is not taken here",
			"Send args with the arguments as a JSON object.")
	default:
		return callForm().unknown(name)
	}
	return nil
}
