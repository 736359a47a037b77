package api

import (
	"context"
	"encoding/json"

	"mcpproxy/internal/admin"
	"mcpproxy/internal/gateway"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/rawjson"
)

// Change is one change of a server, whose body is one member. There is one, since
// each change is put into effect, or refused, by itself.
type Change struct{ gateway.ServerChange }

// Example is what a change looks like.
func (Change) Example() string { return `one of them, such as {"enabled": false}` }

func (*Change) members() any {
	return struct {
		Enabled       bool            `json:"enabled" doc:"Whether the server runs."`
		Quarantined   bool            `json:"quarantined" enum:"true" doc:"Only true: a quarantine ends with an approval."`
		Trust         string          `json:"trust" null:"true" words:"trust" doc:"What becomes of tools that nobody has approved."`
		EnabledTools  []string        `json:"enabled_tools" null:"true" doc:"The only tools that may be called, names or patterns."`
		DisabledTools []string        `json:"disabled_tools" null:"true" doc:"Tools that may not be called, names or patterns."`
		HintOverrides json.RawMessage `json:"hint_overrides" null:"true" type:"object" doc:"Names or patterns of tools with the hints that count instead of the server's."`
	}{}
}

func (in *Change) readMembers(of *input, body []byte) error {
	members, asked := 0, field{}
	err := of.members(body, func(name string, value []byte) (err error) {
		asked, err = of.member(name)
		in.Key, in.Value = name, value
		members++
		return err
	})
	if err == nil && members != 1 {
		err = problem.Newf(problem.InvalidRequest, "The body of the request has %d members: one change at a time.", members).
			WithHint("Send " + of.example + ".")
	}
	if err != nil {
		return err
	}
	on, isBool := rawjson.Bool(in.Value)
	switch {
	case asked.schema.kind() == "boolean" && !isBool:
		return asked.wrongType()
	case in.Key == "quarantined" && !on:
		return invalidValue(in.Key, "false", "true").
			WithHint("To end a quarantine, look at GET " + Prefix + "/servers/" + segment(in.Name) + "/review and approve what it shows.")
	case rawjson.Kind(in.Value) == 'n':
		in.Value = nil
	}
	return nil
}

// MarshalJSON writes the body.
func (in Change) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]json.RawMessage{in.Key: in.Value})
}

func changeServer(a *admin.Admin, ctx context.Context, c gateway.Caller, in Change) (gateway.ServerView, error) {
	return a.ChangeServer(ctx, c, in.ServerChange)
}
