package union

import (
	"encoding/json"

	"mcpproxy/internal/rawjson"
)

// repaired returns the definition of a tool in which strict clients find nothing to refuse: one
// tool that breaks the protocol's schema has them refuse the tools of all servers. Only members are
// changed that are null or that say nothing; a call is checked against what the server itself lists.
func repaired(raw json.RawMessage) json.RawMessage {
	for _, name := range [...]string{"annotations", "title", "description", "outputSchema", "icons", "_meta", "execution"} {
		if string(rawjson.Find(raw, name)) == "null" {
			raw = rawjson.DropMember(raw, name)
		}
	}
	input := json.RawMessage(rawjson.Find(raw, "inputSchema"))
	if rawjson.Kind(input) != '{' {
		return rawjson.SetMember(raw, "inputSchema", json.RawMessage(`{"type":"object"}`))
	}
	fixed := input
	for _, name := range [...]string{"required", "properties"} {
		if string(rawjson.Find(fixed, name)) == "null" {
			fixed = rawjson.DropMember(fixed, name)
		}
	}
	if kind, _ := rawjson.String(rawjson.Find(fixed, "type")); kind != "object" {
		fixed = rawjson.SetMember(fixed, "type", json.RawMessage(`"object"`))
	}
	if string(fixed) == string(input) {
		return raw
	}
	return rawjson.SetMember(raw, "inputSchema", fixed)
}
