package config

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/tailscale/hujson"

	"mcpproxy/internal/rawjson"
)

// OverrideHints sets hints of a tool in the hint_overrides of a server, in an entry
// of the tool's own name, and applies the file. hints is an object; the other
// members of the entry, the other entries and all comments stay.
func (l *Live) OverrideHints(name, tool string, hints json.RawMessage) error {
	var edits []edit
	if err := rawjson.Members(hints, func(hint, value []byte) error {
		path, value := []string{"hint_overrides", tool, string(hint)}, bytes.Clone(value)
		edits = append(edits, func(d *document) ([]splice, error) {
			servers, i := d.server(name)
			if i < 0 {
				return nil, noServer(name)
			}
			return d.setAt(parts(servers.items[i].value), path, value)
		})
		return nil
	}); err != nil {
		return err
	}
	return l.edit(name, edits...)
}

// setAt sets what stands at a path of names in an object. Objects on the way that
// are not there are made.
func (d *document) setAt(object container, path []string, value json.RawMessage) ([]splice, error) {
	i := slices.IndexFunc(object.items, func(it item) bool { return it.name == path[0] })
	if i >= 0 && len(path) > 1 {
		return d.setAt(parts(object.items[i].value), path[1:], value)
	}
	for _, name := range slices.Backward(path[1:]) {
		var err error
		if value, err = rawjson.Marshal(map[string]json.RawMessage{name: value}); err != nil {
			return nil, err
		}
	}
	v, err := hujson.Parse(value)
	if err != nil {
		return nil, err
	}
	if i >= 0 {
		return []splice{d.replace(object.items[i], v)}, nil
	}
	return d.insert(object, func(indent string, lines bool) string { return d.member(path[0], v, indent, 0, lines) }), nil
}
