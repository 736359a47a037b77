package config

import (
	"bytes"
	"encoding/json"

	"mcpproxy/internal/clients/textedit"
	"mcpproxy/internal/mcp/wirejson"
)

// OverrideHints sets hints of a tool in the hint_overrides of a server, in an entry with
// the tool's exact name, and applies the file. hints is an object; other members, other
// entries and comments stay.
func (l *Live) OverrideHints(permit Permit, name, tool string, hints json.RawMessage) error {
	var edits []edit
	if err := wirejson.EachMember(hints, func(hint, value []byte) error {
		path, value := []string{"hint_overrides", tool, string(hint)}, bytes.Clone(value)
		edits = append(edits, func(d document) ([]textedit.Splice, error) {
			servers, i := d.server(name)
			if i < 0 {
				return nil, unknownServerError(name)
			}
			return d.SetAtSplices(textedit.ContainerOf(servers.Items[i].Value), path, value)
		})
		return nil
	}); err != nil {
		return err
	}
	return l.edit(permit, []string{name}, edits...)
}
