package upstream

import (
	"encoding/json"

	"mcpproxy/internal/jsonrpc"
	"mcpproxy/internal/strictjson"
)

const (
	tasksPrefix    = "tasks/"
	tasksExtension = "io.modelcontextprotocol/tasks"
)

// WithoutTasks gives the params of a modern request as those of a client that
// does not know tasks.
func WithoutTasks(params json.RawMessage) json.RawMessage {
	const name = "io.modelcontextprotocol/clientCapabilities"
	if !jsonrpc.MayName(params, tasksExtension) {
		return params
	}
	meta := strictjson.Find(params, "_meta")
	capabilities := strictjson.Find(meta, name)
	if strictjson.Kind(capabilities) != '{' {
		return params
	}
	return jsonrpc.SetMember(params, "_meta", jsonrpc.SetMember(meta, name, withoutExtension(capabilities)))
}

// withoutExtension gives capabilities without the tasks of the modern revision.
func withoutExtension(capabilities json.RawMessage) json.RawMessage {
	extensions := json.RawMessage(strictjson.Find(capabilities, "extensions"))
	if strictjson.Kind(extensions) != '{' {
		return capabilities
	}
	rest := jsonrpc.DropMember(extensions, tasksExtension)
	if len(rest) == len(extensions) {
		return capabilities
	}
	return jsonrpc.SetMember(capabilities, "extensions", rest)
}
