package gate

import (
	"encoding/json"

	"mcpproxy/internal/mcp/wirejson"
)

// repaired returns the definition of a tool in which strict clients find nothing to refuse: one
// tool that breaks the protocol's schema has them refuse the tools of all servers. Only members are
// changed that are null or that say nothing; a call is checked against what the server itself lists.
func repaired(raw json.RawMessage) json.RawMessage {
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
