package config

import (
	"github.com/tailscale/hujson"

	"mcpproxy/internal/gate/policy"
)

// decodeArgumentLaneRules decodes lanes in file order.
func (d *decoder) decodeArgumentLaneRules(v hujson.Value, path string) (any, any) {
	resolved, raw := []ArgumentLaneRule{}, []ArgumentLaneRule{}
	for m, pattern := range d.eachEntry(v, path, "an object (tool name or pattern → the argument that determines the lane)", checkPattern) {
		at := joinPath(path, pattern)
		r, shown := ArgumentLaneRule{Pattern: pattern}, ArgumentLaneRule{Pattern: pattern}
		g := d.decodeObject(m.Value, at, r.keys(), shown.keys())
		_, by := g["by"]
		_, argument := g["argument"]
		switch listed := len(r.Read)+len(r.Write)+len(r.Destructive) > 0; {
		case !by || !argument:
			d.addMistake(m.Name.StartOffset, at, "by and argument are required: the kind of argument, and its path", `for example {"by": "sql", "argument": "$.sql"}`)
		case listed && r.By != policy.ByAction && r.By != "":
			d.addMistake(m.Name.StartOffset, at, "read, write and destructive are only for by: action", "remove them")
		case !listed && r.By == policy.ByAction:
			d.addMistake(m.Name.StartOffset, at, "by: action requires the actions that are read or destructive", `for example "read": ["list", "get"]`)
		}
		resolved, raw = append(resolved, r), append(raw, shown)
	}
	return resolved, raw
}
