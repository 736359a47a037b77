package api

import (
	"context"
	"encoding/json"

	"mcpproxy/internal/gateway"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/rawjson"
	"mcpproxy/internal/settings"
)

// The operations on the configuration file.
var (
	GetConfig        = declare("GET /config", "getConfig", Look, "The configuration file, what is in force of it, and all settings", (*settings.Settings).Config)
	ChangeConfig     = declare("PATCH /config", "changeConfig", Decide, "Set settings in the configuration file; null takes one out", changeConfig).within(restartPatience)
	ReplaceConfig    = declare("PUT /config", "replaceConfig", Decide, "Replace the text of the configuration file", (*settings.Settings).Replace).within(restartPatience)
	ValidateConfig   = declare("POST /config/validate", "validateConfig", Look, "What would come of a text of the configuration file; nothing is applied", (*settings.Settings).Validate)
	ListConfigs      = declare("GET /config/history", "listConfigs", Look, "The texts that were in force, newest first", (*settings.Settings).History)
	GetEarlierConfig = declare("GET /config/history/{id}", "getEarlierConfig", Look, "A text that was in force", (*settings.Settings).Version)
	GetDiagnostics   = declare("GET /diagnostics", "getDiagnostics", Look, "What is wrong with this installation, and what to do about it", (*settings.Settings).Diagnostics)
)

// KeyChanges are changes of settings: null takes one out, where in other bodies it
// is no value.
type KeyChanges struct{ settings.KeyChanges }

// Example is what such changes look like.
func (KeyChanges) Example() string { return `{"set": {"tools_limit": 15}}` }

func (*KeyChanges) members() any { return settings.Keys{} }

func (in *KeyChanges) readMembers(of *input, body []byte) error {
	err := of.members(body, func(name string, value []byte) error {
		asked, err := of.member(name)
		if err != nil {
			return err
		}
		if rawjson.Kind(value) != '{' {
			return asked.wrongType()
		}
		in.Set = map[string]json.RawMessage{}
		return rawjson.Members(value, func(key, value []byte) error {
			if rawjson.Kind(value) == 'n' {
				value = nil
			}
			in.Set[string(key)] = value
			return nil
		})
	})
	if err == nil && in.Set == nil {
		err = problem.New(problem.InvalidParameter, "The member 'set' is required.", "Send "+of.example+".").With("parameter", "set")
	}
	return err
}

// MarshalJSON writes the body.
func (in KeyChanges) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]any{"set": in.Set})
}

func changeConfig(s *settings.Settings, ctx context.Context, c gateway.Caller, in KeyChanges) (settings.Config, error) {
	return s.Change(ctx, c, in.KeyChanges)
}
