package mcp

import (
	"encoding/json"

	"mcpproxy/internal/mcp/wirejson"
)

// WithoutTasks returns the params of a modern request as those of a client that
// does not know tasks.
func WithoutTasks(params json.RawMessage) json.RawMessage {
	if !wirejson.MayName(params, TasksExtension) {
		return params
	}
	meta := wirejson.Find(params, "_meta")
	capabilities := wirejson.Find(meta, MetaCapabilities)
	if wirejson.Kind(capabilities) != '{' {
		return params
	}
	return wirejson.SetMember(params, "_meta", wirejson.SetMember(meta, MetaCapabilities, WithoutTaskSupport(capabilities)))
}

// WithoutTaskSupport returns capabilities without the tasks of the modern revision.
func WithoutTaskSupport(capabilities json.RawMessage) json.RawMessage {
	extensions := json.RawMessage(wirejson.Find(capabilities, "extensions"))
	if wirejson.Kind(extensions) != '{' {
		return capabilities
	}
	rest := wirejson.DropMember(extensions, TasksExtension)
	if len(rest) == len(extensions) {
		return capabilities
	}
	return wirejson.SetMember(capabilities, "extensions", rest)
}
