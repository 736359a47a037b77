package api

import (
	"bytes"
	"context"
	"encoding/json"

	"mcpproxy/internal/config"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
)

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
