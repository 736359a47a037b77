package config

import (
	"cmp"

	"github.com/tailscale/hujson"
)

// warn reports a key or value without effect, with its server.
func (d *decoder) warn(offset int, path, message, hint string) {
	if len(d.warnings.list) == maxWarnings {
		d.warnings.more++
		return
	}
	if d.serverName != "" {
		message = "server " + quote(d.serverName) + ": " + message
	}
	d.warnings.list = append(d.warnings.list, d.mistake(offset, path, message, hint))
}

// foreign warns of another client's key, and reports whether m is one. in is the path of
// its object.
func (d *decoder) foreign(m hujson.ObjectMember, in, path, name string) bool {
	object := "file"
	switch {
	case d.serverPath != "" && in == d.serverPath:
		object = "server"
	case in != "":
		return false
	}
	advice, ok := foreignKeyAdvice(object, name, m.Value.Value.Kind())
	if ok {
		d.warn(m.Name.StartOffset, path, quote(name)+" is a key of other clients and has no effect here", cmp.Or(advice, "take it out"))
	}
	return ok
}

// foreignReferences warns of references in other programs' syntax.
func (d *decoder) foreignReferences(v hujson.Value, path, raw string) {
	told := map[string]bool{}
	for _, r := range ForeignReferences(raw) {
		message, hint := r.Advice()
		if r.Kind == Input || told[message] { // input is reported as a mistake
			continue
		}
		told[message] = true
		d.warn(v.StartOffset, path, "in "+clip(label(path))+", "+message, hint)
	}
}
