package config

import "github.com/tailscale/hujson"

// selections decodes select in file order.
func (d *decoder) selections(v hujson.Value, path string) any {
	obj, ok := v.Value.(*hujson.Object)
	if !ok {
		d.wrongType(v, path, "an object (tool name or pattern → expression of jq)")
		return nil
	}
	all := []Selection{}
	for m, pattern := range d.members(obj, path) {
		at := join(path, pattern)
		if !d.reportCheck(m.Name.StartOffset, at, checkPattern(pattern)) {
			continue
		}
		l, isText := m.Value.Value.(hujson.Literal)
		if !isText || l.Kind() != '"' {
			d.wrongType(m.Value, at, "a string: an expression of jq")
			continue
		}
		one, err := NewSelection(pattern, l.String())
		if err != nil {
			d.addMistake(m.Value.StartOffset, at, "the selection cannot be taken: "+err.Error(), "for example `[.items[] | {id, name}]`")
			continue
		}
		all = append(all, one)
	}
	return all
}
