package api

import (
	"context"
	"encoding/json"

	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/ops"
)

// The operations on the configuration file.
var (
	GetConfig        = declareOperation("GET /config", "getConfig", Look, "Get the configuration file, its state, and all settings", (*ops.ConfigOperations).Config)
	ChangeConfig     = declareOperation("PATCH /config", "changeConfig", Decide, "Set settings in the configuration file; null takes one out", changeConfig).withTimeout(restartTimeout)
	ReplaceConfig    = declareOperation("PUT /config", "replaceConfig", Decide, "Replace the text of the configuration file", (*ops.ConfigOperations).ReplaceFile).withTimeout(restartTimeout)
	ValidateConfig   = declareOperation("POST /config/validate", "validateConfig", Look, "Check a text of the configuration file without applying it", validateConfig)
	ConfirmConfig    = declareOperation("POST /config/confirm", "confirmConfig", Decide, "Apply the whole configuration file, including changes that grant more access; presence requires a signature", (*ops.ConfigOperations).ConfirmChanges).withTimeout(restartTimeout)
	ListConfigs      = declareOperation("GET /config/history", "listConfigs", Look, "The texts that were in force, newest first", (*ops.ConfigOperations).ListVersions)
	GetEarlierConfig = declareOperation("GET /config/history/{id}", "getEarlierConfig", Look, "A text that was in force", (*ops.ConfigOperations).VersionText)
	GetDiagnostics   = declareOperation("GET /diagnostics", "getDiagnostics", Look, "List problems of this installation and their fixes", (*ops.ConfigOperations).RunDiagnostics)
)

// KeyChanges changes settings. A null value removes a setting; in other bodies null means absent.
type KeyChanges struct{ ops.SettingChanges }

// Example returns an example for the OpenAPI document.
func (KeyChanges) Example() string { return `{"set": {"tools_limit": 15}}` }

func (*KeyChanges) bodyType() any { return ops.SettingValues{} }

func (in *KeyChanges) parseBody(of *inputSpec, body []byte) error {
	err := of.eachMember(body, func(name string, value []byte) (err error) {
		asked, err := of.bodyField(name)
		if err == nil {
			in.Set, err = asked.parseKeyChanges(value)
		}
		return err
	})
	if err == nil && in.Set == nil {
		err = of.missingMemberError("set")
	}
	return err
}

// parseKeyChanges parses settings with their new values, nil for null.
func (f *inputField) parseKeyChanges(value []byte) (map[string]json.RawMessage, error) {
	if wirejson.Kind(value) != '{' {
		return nil, f.wrongTypeError()
	}
	set := map[string]json.RawMessage{}
	return set, wirejson.EachMember(value, func(key, value []byte) error {
		if wirejson.Kind(value) == 'n' {
			value = nil
		}
		set[string(key)] = value
		return nil
	})
}

// MarshalJSON encodes the body.
func (in KeyChanges) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]any{"set": in.Set})
}

func changeConfig(s *ops.ConfigOperations, ctx context.Context, c ops.Caller, in KeyChanges) (ops.Config, error) {
	return s.ChangeSettings(ctx, c, in.SettingChanges)
}

// Candidate is a text to validate, with changes of settings as in KeyChanges.
type Candidate struct{ ops.ValidateRequest }

// Example returns an example for the OpenAPI document.
func (Candidate) Example() string { return `{"text": "{}", "set": {"tools_limit": 15}}` }

func (*Candidate) bodyType() any { return ops.ConfigDraft{} }

func (in *Candidate) parseBody(of *inputSpec, body []byte) error {
	given := false
	err := of.eachMember(body, func(name string, value []byte) error {
		asked, err := of.bodyField(name)
		switch {
		case err != nil || wirejson.Kind(value) == 'n':
		case name == "set":
			in.Set, err = asked.parseKeyChanges(value)
		default:
			if given = json.Unmarshal(value, &in.Text) == nil; !given {
				err = asked.wrongTypeError()
			}
		}
		return err
	})
	if err == nil && !given {
		err = of.missingMemberError("text")
	}
	return err
}

// MarshalJSON encodes the body.
func (in Candidate) MarshalJSON() ([]byte, error) {
	body := map[string]any{"text": in.Text}
	if in.Set != nil {
		body["set"] = in.Set
	}
	return json.Marshal(body)
}

func validateConfig(s *ops.ConfigOperations, ctx context.Context, c ops.Caller, in Candidate) (ops.Validation, error) {
	return s.Validate(ctx, c, in.ValidateRequest)
}
