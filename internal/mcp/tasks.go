package mcp

import (
	"encoding/json"

	"mcpproxy/internal/rawjson"
)

// WithoutTasks returns the params of a modern request as those of a client that
// does not know tasks.
func WithoutTasks(params json.RawMessage) json.RawMessage {
	if !rawjson.MayName(params, TasksExtension) {
		return params
	}
	meta := rawjson.Find(params, "_meta")
	capabilities := rawjson.Find(meta, MetaCapabilities)
	if rawjson.Kind(capabilities) != '{' {
		return params
	}
	return rawjson.SetMember(params, "_meta", rawjson.SetMember(meta, MetaCapabilities, WithoutTaskSupport(capabilities)))
}

// WithoutTaskSupport returns capabilities without the tasks of the modern revision.
func WithoutTaskSupport(capabilities json.RawMessage) json.RawMessage {
	extensions := json.RawMessage(rawjson.Find(capabilities, "extensions"))
	if rawjson.Kind(extensions) != '{' {
		return capabilities
	}
	rest := rawjson.DropMember(extensions, TasksExtension)
	if len(rest) == len(extensions) {
		return capabilities
	}
	return rawjson.SetMember(capabilities, "extensions", rest)
}
