package gate

import (
	"encoding/json"

	"mcpproxy/internal/mcp/wirejson"
)

// repairToolDefinition returns the definition of a tool in a form that strict clients accept: they
// reject the tools of all servers for one tool that violates the schema of the protocol. It changes
// only members that are null or meaningless. A call is checked against the original definition.
func repairToolDefinition(raw json.RawMessage) json.RawMessage {
	for _, name := range [...]string{"annotations", "title", "description", "outputSchema", "icons", "_meta", "execution"} {
		if string(wirejson.Find(raw, name)) == "null" {
			raw = wirejson.DropMember(raw, name)
		}
	}
	input := json.RawMessage(wirejson.Find(raw, "inputSchema"))
	if wirejson.Kind(input) != '{' {
		return wirejson.SetMember(raw, "inputSchema", json.RawMessage(`{"type":"object"}`))
	}
	fixed := input
	for _, name := range [...]string{"required", "properties"} {
		if string(wirejson.Find(fixed, name)) == "null" {
			fixed = wirejson.DropMember(fixed, name)
		}
	}
	if kind, _ := wirejson.String(wirejson.Find(fixed, "type")); kind != "object" {
		fixed = wirejson.SetMember(fixed, "type", json.RawMessage(`"object"`))
	}
	if string(fixed) == string(input) {
		return raw
	}
	return wirejson.SetMember(raw, "inputSchema", fixed)
}
