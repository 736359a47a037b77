package api

import (
	"context"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"mcpproxy/internal/gateway"
	"mcpproxy/internal/policy"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/search"
	"mcpproxy/internal/strictjson"
)

// maxBody bounds the body of a request, in bytes. The bound on arguments is the
// gateway's and lower.
const maxBody = 5 << 20

// CallAnswer is the answer of POST /tools/call. A tool that reports a failure
// of its own has still answered: the status is 200 and IsError is set.
type CallAnswer struct {
	Result     json.RawMessage `json:"result" doc:"The tool's CallToolResult, as its server sent it."`
	IsError    bool            `json:"is_error" doc:"The tool reports a failure of its own."`
	Warnings   []string        `json:"warnings"`
	ActivityID string          `json:"activity_id" doc:"The record of the call."`
	Handle     string          `json:"handle,omitempty" doc:"Set when the result was cut: read_result on /mcp gives the rest."`
}

// callMembers are the members of the body of POST /tools/call.
func callMembers() []string { return []string{"tool_variant", "name", "args", "intent", "timeout"} }

// callBody is the body of POST /tools/call in the document.
func callBody() *huma.RequestBody {
	word := func(doc string, allowed ...string) *huma.Schema {
		s := &huma.Schema{Type: huma.TypeString, Description: doc}
		for _, a := range allowed {
			s.Enum = append(s.Enum, a)
		}
		return s
	}
	longest := policy.MaxReason
	reason := word("Why, for the log.")
	reason.MaxLength = &longest
	return &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"application/json": {Schema: &huma.Schema{
		Type: huma.TypeObject, AdditionalProperties: false, Required: []string{"tool_variant", "name"},
		Properties: map[string]*huma.Schema{
			"tool_variant": word("The calling tool.", variants()...),
			"name":         word("The tool id: server:tool."),
			"args":         {Type: huma.TypeObject, Description: "The tool's arguments.", AdditionalProperties: true},
			"intent": {Type: huma.TypeObject, Description: "What the caller declares.", Properties: map[string]*huma.Schema{
				"operation_type":   word("Must be that of the variant.", operations()...),
				"data_sensitivity": word("How sensitive the data is.", Sensitivities()...),
				"reason":           reason,
			}},
			"timeout": word("How long the call may take, such as 30s; the configured call_timeout if that is shorter."),
		},
	}}}}
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

// readBody reads a JSON body whole. Only application/json is taken: a page of
// another site can send the other types without being asked.
func readBody(r *http.Request) ([]byte, error) {
	if mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || mediaType != "application/json" {
		return nil, problem.New(problem.InvalidRequest, "The Content-Type of the request must be application/json.",
			"Send the header Content-Type: application/json.")
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	switch {
	case len(body) > maxBody:
		return nil, problem.Newf(problem.TooLarge, "The body of the request is larger than %d bytes.", maxBody).
			WithHint("Send less at once.").With("limit", maxBody)
	case err != nil:
		return nil, problem.New(problem.InvalidRequest, "The body of the request did not arrive completely.", "Send it again.").Because(err)
	}
	return body, nil
}

// parseCall reads the body strictly. What is wrong with name, intent and
// arguments themselves, the gateway says, and records.
func parseCall(body []byte) (gateway.CallRequest, error) {
	var req gateway.CallRequest
	if err := strictjson.Check(body, strictjson.Limits{Bytes: maxBody}); err != nil {
		return req, problem.New(problem.InvalidRequest, "The body of the request: "+err.Error(),
			"Send one JSON object without duplicate members.").Because(err)
	}
	if strictjson.Kind(body) != '{' {
		return req, problem.New(problem.InvalidRequest, "The body of the request is not a JSON object.",
			`Send {"tool_variant": "call_tool_read", "name": "server:tool", "args": {}}.`)
	}
	err := strictjson.Members(body, func(name, value []byte) error { return setMember(&req, string(name), value) })
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
		p := problem.Newf(problem.InvalidRequest, "The body of the request has an unknown member '%s'.", clip(name)).
			WithHint("The members are " + strings.Join(callMembers(), ", ") + ".")
		if near := search.Nearest(name, callMembers(), 1); len(near) > 0 {
			p.WithHint("Did you mean " + near[0] + "?")
		}
		return p
	}
	return nil
}

// shown is a JSON value as an error gives it back: a string without its quotes.
func shown(value []byte) string {
	if s, ok := strictjson.String(value); ok {
		return s
	}
	return string(value)
}
