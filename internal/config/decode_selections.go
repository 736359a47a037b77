package config

import "github.com/tailscale/hujson"

// decodeResultSelections decodes select in file order.
func (d *decoder) decodeResultSelections(v hujson.Value, path string) any {
	all := []ResultSelection{}
	for m, pattern := range d.eachEntry(v, path, "an object (tool name or pattern → expression of jq)", checkPattern) {
		at := joinPath(path, pattern)
		l, isText := m.Value.Value.(hujson.Literal)
		if !isText || l.Kind() != '"' {
			d.reportWrongType(m.Value, at, "a string: an expression of jq")
			continue
		}
		one, err := NewResultSelection(pattern, l.String())
		if err != nil {
			d.addMistake(m.Value.StartOffset, at, "the selection is invalid: "+err.Error(), "for example `[.items[] | {id, name}]`")
			continue
		}
		all = append(all, one)
	}
	return all
}
