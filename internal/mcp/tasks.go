package mcp

import (
	"encoding/json"

	"mcpproxy/internal/mcp/wirejson"
)

// RemoveTasksExtension removes the tasks extension from the params of a modern request.
func RemoveTasksExtension(params json.RawMessage) json.RawMessage {
	if !wirejson.MayContain(params, TasksExtension) {
		return params
	}
	meta := wirejson.Find(params, "_meta")
	capabilities := wirejson.Find(meta, MetaCapabilities)
	if wirejson.Kind(capabilities) != '{' {
		return params
	}
	return wirejson.SetMember(params, "_meta", wirejson.SetMember(meta, MetaCapabilities, RemoveTasksFromCapabilities(capabilities)))
}

// RemoveTasksFromCapabilities removes the tasks extension from capabilities.
func RemoveTasksFromCapabilities(capabilities json.RawMessage) json.RawMessage {
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
