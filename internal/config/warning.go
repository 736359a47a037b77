package config

import (
	"cmp"

	"github.com/tailscale/hujson"
)

// warn tells of what has no effect, with the server that it stands in.
func (d *decoder) warn(offset int, path, message, hint string) {
	if len(d.warnings.list) == maxWarnings {
		d.warnings.more++
		return
	}
	if d.within != "" {
		message = "server " + quote(d.within) + ": " + message
	}
	d.warnings.list = append(d.warnings.list, d.mistake(offset, path, message, hint))
}

// foreign warns of a key of other clients, and reports whether m is one. in is
// the path of the object that it stands in.
func (d *decoder) foreign(m hujson.ObjectMember, in, path, name string) bool {
	object := "file"
	switch {
	case d.withinPath != "" && in == d.withinPath:
		object = "server"
	case in != "":
		return false
	}
	advice, ok := foreign(object, name, m.Value.Value.Kind())
	if ok {
		d.warn(m.Name.StartOffset, path, quote(name)+" is a key of other clients and has no effect here", cmp.Or(advice, "take it out"))
	}
	return ok
}

// foreignReferences warns of what other programs would put a value in the place
// of.
func (d *decoder) foreignReferences(v hujson.Value, path, raw string) {
	told := map[string]bool{}
	for _, r := range ForeignReferences(raw) {
		message, hint := r.Advice()
		if r.Kind == Input || told[message] { // of the first there is a mistake already
			continue
		}
		told[message] = true
		d.warn(v.StartOffset, path, "in "+clip(label(path))+", "+message, hint)
	}
}
