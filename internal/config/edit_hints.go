package config

import (
	"bytes"
	"encoding/json"

	"mcpproxy/internal/clients/textedit"
	"mcpproxy/internal/mcp/wirejson"
)

// SetHintOverride sets hints of a tool in the hint_overrides of a server, in an entry with the tool's exact name, and
// applies the file. hints is an object. Other members, other entries and comments are preserved.
func (l *LiveConfig) SetHintOverride(permit ConfirmFunc, name, tool string, hints json.RawMessage) error {
	var edits []textEdit
	if err := wirejson.EachMember(hints, func(hint, value []byte) error {
		path, value := []string{"hint_overrides", tool, string(hint)}, bytes.Clone(value)
		edits = append(edits, editOfServer(name, func(d document, server textedit.Container) ([]textedit.Splice, error) {
			return d.SplicesToSetAtPath(server, path, value, false)
		}))
		return nil
	}); err != nil {
		return err
	}
	return l.editServers(permit, []string{name}, edits...)
}
