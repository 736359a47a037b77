package config

import (
	"bytes"
	"encoding/json"

	"mcpproxy/internal/jsonc"
	"mcpproxy/internal/rawjson"
)

// OverrideHints sets hints of a tool in the hint_overrides of a server, in an entry
// of the tool's own name, and applies the file. hints is an object; the other
// members of the entry, the other entries and all comments stay.
func (l *Live) OverrideHints(permit Permit, name, tool string, hints json.RawMessage) error {
	var edits []edit
	if err := rawjson.Members(hints, func(hint, value []byte) error {
		path, value := []string{"hint_overrides", tool, string(hint)}, bytes.Clone(value)
		edits = append(edits, func(d document) ([]jsonc.Splice, error) {
			servers, i := d.server(name)
			if i < 0 {
				return nil, noServer(name)
			}
			return d.SetAt(jsonc.Parts(servers.Items[i].Value), path, value)
		})
		return nil
	}); err != nil {
		return err
	}
	return l.edit(permit, []string{name}, edits...)
}
