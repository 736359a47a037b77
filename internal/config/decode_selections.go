package config

import "github.com/tailscale/hujson"

// decodeResultSelections decodes select in file order.
func (d *decoder) decodeResultSelections(v hujson.Value, path string) any {
	obj, ok := v.Value.(*hujson.Object)
	if !ok {
		d.reportWrongType(v, path, "an object (tool name or pattern → expression of jq)")
		return nil
	}
	all := []ResultSelection{}
	for m, pattern := range d.eachUniqueMember(obj, path) {
		at := joinPath(path, pattern)
		if !d.reportCheckError(m.Name.StartOffset, at, checkPattern(pattern)) {
			continue
		}
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
