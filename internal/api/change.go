package api

import (
	"context"
	"encoding/json"

	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
)

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
